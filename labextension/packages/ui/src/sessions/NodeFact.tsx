/** On which node a session is, and what it means for the session where that is silent. */
import { unwrap } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { listKey } from '../lists/list';
import { meQuery } from '../queries';

export function NodeFact({ name }: { name: string }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const { data } = useQuery({
    queryKey: [...listKey('agent-summaries'), 'of', name],
    queryFn: ({ signal }) =>
      unwrap(
        host.api.GET('/api/agent-summaries', { params: { query: { search: name } }, signal })
      ),
    enabled: host.visible && (me?.sees_agents ?? false)
  });
  const status = data?.items.find(each => each.name === name)?.status ?? 'ALIVE';
  return (
    <>
      {name}
      {status === 'ALIVE' ? null : (
        <span className="bai-reason">{t('session.nodeSilent')}</span>
      )}
    </>
  );
}
