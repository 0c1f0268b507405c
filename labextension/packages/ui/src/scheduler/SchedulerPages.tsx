import { useQuery } from '@tanstack/react-query';
import { useHost } from '../host';
import { familyOf } from '../nouns/families';
import { ForbiddenPage, MissingPage } from '../pages/Missing';
import type { PageProps } from '../pages/page';
import { meQuery } from '../queries';
import PreemptionPage from './PreemptionPage';
import QueuePage from './QueuePage';
import SharesPage from './SharesPage';
import SimulatePage from './SimulatePage';

const PARTS: Record<string, () => JSX.Element> = {
  '': QueuePage,
  shares: SharesPage,
  preemption: PreemptionPage,
  simulate: SimulatePage
};

export function SchedulerPages({ params }: PageProps): JSX.Element {
  const me = useQuery(meQuery(useHost())).data;
  const { part = '' } = params;
  const Part = PARTS[part];
  const way = familyOf('/admin/scheduler').find(each => each.path.endsWith(`/${part}`));
  if (me && way && !way.admits(me)) {
    return <ForbiddenPage />;
  }
  return Part ? <Part /> : <MissingPage />;
}
