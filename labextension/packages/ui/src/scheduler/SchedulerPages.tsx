import { MissingPage } from '../pages/Missing';
import type { PageProps } from '../pages/page';
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
  const Part = PARTS[params.part ?? ''];
  return Part ? <Part /> : <MissingPage />;
}
