import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Segmented } from '../kit/Segmented';
import { Switch } from '../kit/Switch';
import { PageHeading } from '../PageHeading';
import { meQuery } from '../queries';
import { NewSession } from './NewSession';
import { SessionList } from './SessionList';
import { StreamIndicator } from './StreamIndicator';
import { EVERYBODY, type Order, type StatusFilter } from './view';

/** Everything about sessions on one page: which, how they are, and what to do. */
export function SessionsPage(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const [status, setStatus] = useState<StatusFilter>('live');
  const [order, setOrder] = useState<Order>('-created_at');
  const [everybody, setEverybody] = useState(false);
  const sees = me?.roles.includes('superadmin') ?? false;
  // An administrator's stream tells about everybody: the list must know whose it is.
  const owner = everybody ? EVERYBODY : (me?.name ?? '');
  return (
    <>
      <PageHeading title={t('sessions.title')} beside={<StreamIndicator />}>
        <NewSession />
      </PageHeading>
      <div className="bai-toolbar">
        <Segmented
          label={t('sessions.filter')}
          value={status}
          onChange={chosen => setStatus(chosen)}
          options={[
            { value: 'live', text: t('sessions.filterLive') },
            { value: 'ended', text: t('sessions.filterEnded') },
            { value: 'all', text: t('sessions.filterAll') }
          ]}
        />
        {sees ? (
          <Switch label={t('sessions.everybody')} checked={everybody} onChange={setEverybody} />
        ) : null}
      </div>
      <SessionList
        key={`${status} ${order} ${everybody}`}
        status={status}
        owner={owner}
        showOwner={sees && everybody}
        order={order}
        onOrder={setOrder}
      />
    </>
  );
}
