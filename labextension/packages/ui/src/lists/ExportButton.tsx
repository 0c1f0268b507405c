import { Download } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Button, IconButton } from '../kit/Button';
import { exportList, saveAs } from './csv';
import type { ListOf } from './list';
import type { ListView } from './view';
import { useFailure } from '../wording';

/** Everything that the filters let through, page after page, as one file. */
export function ExportButton<Row>({
  list,
  view
}: {
  list: ListOf<Row>;
  view: ListView;
}): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const say = useFailure();
  const [count, setCount] = useState<number | null>(null);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const start = async (): Promise<void> => {
    const stop = new AbortController();
    running.current = stop;
    setCount(0);
    try {
      const file = await exportList(list, view, stop.signal, setCount);
      saveAs(file, `${list.name}-${new Date().toISOString().slice(0, 10)}.csv`);
    } catch (error) {
      if (!stop.signal.aborted) {
        host.notify('error', t('list.exportFailed', { reason: say(error) }));
      }
    } finally {
      setCount(null);
    }
  };
  if (count !== null) {
    return (
      <Button kind="quiet" size="small" busy onClick={() => running.current?.abort()}>
        {t('list.exporting', { count })}
      </Button>
    );
  }
  return (
    <IconButton label={t('list.export')} onClick={() => void start()}>
      <Download size={16} aria-hidden />
    </IconButton>
  );
}
