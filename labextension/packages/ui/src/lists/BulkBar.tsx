import { X } from 'lucide-react';
import { useId, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import type { BulkAction, ListOf } from './list';
import type { Selection } from './useSelection';
import { useFailure } from '../wording';

interface Props<Row> {
  list: ListOf<Row>;
  selection: Selection<Row>;
}

/** What can be done with everything that is chosen; there while something is. */
export function BulkBar<Row>({ list, selection }: Props<Row>): JSX.Element | null {
  const { t } = useTranslation();
  const count = selection.rows.length;
  if (!list.bulk?.length || count === 0) {
    return null;
  }
  return (
    <div className="bai-bulk" role="region" aria-label={t('list.bulk')}>
      <strong role="status">{t('list.chosen', { count })}</strong>
      {list.bulk.map(action => (
        <BulkButton key={action.key} action={action} selection={selection} />
      ))}
      <Button kind="quiet" icon={<X size={16} aria-hidden />} onClick={selection.clear}>
        {t('list.chooseNone')}
      </Button>
    </div>
  );
}

function BulkButton<Row>({
  action,
  selection
}: {
  action: BulkAction<Row>;
  selection: Selection<Row>;
}): JSX.Element {
  const host = useHost();
  const say = useFailure();
  const [busy, setBusy] = useState(false);
  const id = useId();
  const { admits, icon, text, why } = action;
  const rows = admits ? selection.rows.filter(row => admits(row)) : selection.rows;
  const impossible = rows.length === 0;
  const run = async (): Promise<void> => {
    if (impossible || busy) {
      return;
    }
    setBusy(true);
    try {
      if ((await action.run(rows)) !== false) {
        selection.clear();
      }
    } catch (error) {
      host.notify('error', say(error));
    } finally {
      setBusy(false);
    }
  };
  const few = rows.length < selection.rows.length && !impossible ? ` (${rows.length})` : '';
  return (
    <>
      <Button
        kind={action.danger ? 'danger' : 'plain'}
        icon={icon}
        busy={busy}
        onClick={() => void run()}
        {...(impossible ? { 'aria-disabled': true, 'aria-describedby': id } : {})}
      >
        {`${text}${few}`}
      </Button>
      {impossible && why ? (
        <span id={id} className="bai-blocked">
          {why}
        </span>
      ) : null}
    </>
  );
}
