import type { Session } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../address';
import { useHost } from '../host';
import { Segmented } from '../kit/Segmented';
import { Switch } from '../kit/Switch';
import { Tabs } from '../kit/Tabs';
import { NounList } from '../lists';
import { PageHeading } from '../PageHeading';
import { useLooksOnly } from '../pages/useLooksOnly';
import { administers } from '../pages/page';
import { meQuery, resourcesQuery } from '../queries';
import { useBulkStop } from './bulk';
import { readChoices, useSessionList } from './list';
import { NewSession } from './NewSession';
import { useStopSession } from './stop';
import { StreamIndicator } from './StreamIndicator';
import { UsageContext, useUsage } from './usage';
import type { StatusFilter } from './view';

const TYPES = ['', 'interactive', 'batch'] as const;
const NONE: Session[] = [];

/** Everything about sessions on one page: which, how they are, and what to do. */
export function SessionsPage(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const resources = useQuery(resourcesQuery(host)).data;
  const [address, setAddress] = useAddress();
  const [rows, setRows] = useState(NONE);
  const usage = useUsage(rows);
  const { ask, dialog } = useStopSession();
  const bulk = useBulkStop(me?.name ?? '');
  const looksOnly = useLooksOnly();
  const choices = readChoices(Object.fromEntries(address));
  const sees = me !== undefined && (administers(me) || me.roles.includes('monitor'));
  const choose = (key: string, value: string): void =>
    setAddress(old => {
      const next = new URLSearchParams(old);
      // Another set of rows begins at its first page, and knows other states.
      ['after', 'state', key].forEach(each => next.delete(each));
      if (value) {
        next.set(key, value);
      }
      return next;
    });
  const list = useSessionList({
    me: me?.name ?? '',
    sees,
    // Who only looks on has no sessions to begin with.
    everybody: looksOnly || (sees && choices.everybody),
    projects: me?.projects ?? [],
    groups: resources?.resource_groups ?? [],
    bulk: looksOnly ? undefined : bulk.actions,
    onStop: ask,
    onRows: setRows
  });
  return (
    <>
      <PageHeading title={t('sessions.title')} beside={<StreamIndicator />}>
        <NewSession />
      </PageHeading>
      <Tabs
        label={t('sessionList.type')}
        value={choices.type}
        onChange={type => choose('type', type)}
        tabs={TYPES.map(key => ({
          key: key as string,
          text: key ? t(`sessionType.${key}`) : t('sessions.filterAll')
        }))}
      >
        <UsageContext.Provider value={usage}>
          <NounList
            list={list}
            beside={
              <>
                <Segmented
                  label={t('sessions.filter')}
                  value={choices.period as StatusFilter}
                  onChange={period => choose('status', period === 'live' ? '' : period)}
                  options={[
                    { value: 'live', text: t('sessions.filterLive') },
                    { value: 'ended', text: t('sessions.filterEnded') },
                    { value: 'all', text: t('sessions.filterAll') }
                  ]}
                />
                {sees && !looksOnly ? (
                  <Switch
                    label={t('sessions.everybody')}
                    checked={choices.everybody}
                    onChange={on => choose('all', on ? '1' : '')}
                  />
                ) : null}
              </>
            }
          />
        </UsageContext.Provider>
      </Tabs>
      {dialog}
      {bulk.dialog}
    </>
  );
}
