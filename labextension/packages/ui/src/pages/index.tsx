/** Every page, and the one whose address is asked for. */
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, type ComponentType } from 'react';
import { useTranslation } from 'react-i18next';
import { Route, Switch } from 'wouter';
import { useHost } from '../host';
import { Texts } from '../i18n/Texts';
import { Skeleton } from '../kit/States';
import { patiently } from '../patiently';
import { meQuery } from '../queries';
import { Boundary } from './Boundary';
import { dataPages } from './data';
import { ForbiddenPage, MissingPage } from './Missing';
import { ownPages } from './own';
import { isMonitor, type Page, type PageProps } from './page';
import { sitePages } from './site';
import { workPages } from './work';

export type { Group, Page, PageProps } from './page';

export const PAGES: readonly Page[] = [...workPages, ...dataPages, ...sitePages, ...ownPages];

const components = new Map<string, ComponentType<PageProps>>(
  PAGES.map(page => [page.path, later(page)])
);

/** What fails to load is remembered by React, so that only a new one is asked for. */
function later(page: Page): ComponentType<PageProps> {
  return lazy(() => patiently(page.load));
}

/** Shows the page of the address that the router around it stands at. */
export function Pages(): JSX.Element {
  return (
    <Switch>
      {PAGES.map(page => (
        <Route key={page.path} path={page.path}>
          {params => <Shown page={page} params={readParams(params as PageProps['params'])} />}
        </Route>
      ))}
      <Route>
        <MissingPage />
      </Route>
    </Switch>
  );
}

/** What parts of an address say: the router leaves the signs that divide one as they were. */
function readParams(params: PageProps['params']): PageProps['params'] {
  const read = (part: string): string =>
    part.replace(/%(2[3-9A-F]|3[A-F]|40)/gi, decodeURIComponent);
  return Object.fromEntries(
    Object.entries(params).map(([name, part]) => [name, part && read(part)])
  );
}

function Shown({ page, params }: PageProps & { page: Page }): JSX.Element {
  const { t } = useTranslation();
  const me = useQuery(meQuery(useHost())).data;
  const Component = components.get(page.path);
  const meanwhile = <Skeleton rows={4} label={t('state.loading')} />;
  if (!Component) {
    return <MissingPage />;
  }
  if (page.admits && me && !page.admits(me)) {
    return <ForbiddenPage toMonitors={isMonitor(me)} />;
  }
  return (
    <Boundary key={page.path} onRetry={() => components.set(page.path, later(page))}>
      <Suspense fallback={meanwhile}>
        <Texts of={page.areas} meanwhile={meanwhile}>
          <Component key={JSON.stringify(params)} params={params} />
        </Texts>
      </Suspense>
    </Boundary>
  );
}
