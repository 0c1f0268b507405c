/** Ending many sessions: asked once, shown at once, and told how each of them ended. */
import { unwrap, type Schemas, type Session, type SessionPage } from '@backendai/api';
import { useQueryClient } from '@tanstack/react-query';
import { Square } from 'lucide-react';
import { useRef, useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { FormDialog } from '../kit/FormDialog';
import type { BulkAction } from '../lists';
import { keys } from '../queries';
import { canStop, isQueued } from './status';
import { markStopping } from './view';
import { useFailure } from '../wording';

/** How many names are written out. */
const NAMED = 8;

interface Asked {
  sessions: Session[];
  answer(done: boolean): void;
}

export function useBulkStop(me: string): { actions: BulkAction<Session>[]; dialog: ReactNode } {
  const { t } = useTranslation();
  const [asked, setAsked] = useState<Asked | null>(null);
  const stop = useStopMany();
  const last = useRef<Session[]>([]);
  const sessions = asked?.sessions ?? last.current;
  last.current = sessions;
  const answer = (done: boolean): void => {
    asked?.answer(done);
    setAsked(null);
  };
  const started = sessions.filter(each => !isQueued(each.status)).length;
  const others = sessions.filter(each => each.owner !== me).length;
  const rest = sessions.length - NAMED;
  const dialog = (
    <FormDialog
      open={asked !== null}
      title={t('sessionList.stopMany', { count: sessions.length })}
      submit={t('sessions.stopConfirm')}
      cancel={t('sessions.stopCancel')}
      danger
      onClose={() => answer(false)}
      onSubmit={() => {
        void stop(sessions);
        answer(true);
      }}
    >
      <ul className="bai-names">
        {sessions.slice(0, NAMED).map(each => (
          <li key={each.id}>
            {each.name}
            {each.owner === me ? '' : ` · ${each.owner}`}
          </li>
        ))}
        {rest > 0 ? <li>{t('sessionList.andMore', { count: rest })}</li> : null}
      </ul>
      {started ? <p>{t('sessionList.stopManyText', { count: started })}</p> : null}
      {others ? (
        <p className="bai-loss">{t('sessionList.stopOthers', { count: others })}</p>
      ) : null}
      {started ? <p className="bai-loss">{t('sessions.stopFiles')}</p> : null}
      {started ? null : <p>{t('sessionList.stopManyPending')}</p>}
    </FormDialog>
  );
  const actions: BulkAction<Session>[] = [
    {
      key: 'stop',
      text: t('sessions.stopConfirm'),
      icon: <Square size={12} fill="currentcolor" aria-hidden />,
      danger: true,
      admits: session => canStop(session.status),
      why: t('sessionList.nothingToStop'),
      run: rows =>
        new Promise<boolean>(resolve => setAsked({ sessions: rows, answer: resolve }))
    }
  ];
  return { actions, dialog };
}

function useStopMany(): (sessions: Session[]) => Promise<void> {
  const { t } = useTranslation();
  const host = useHost();
  const say = useFailure();
  const client = useQueryClient();
  return async sessions => {
    await client.cancelQueries({ queryKey: keys.sessions });
    client.setQueriesData<SessionPage>(
      { queryKey: keys.sessions },
      page => page && sessions.reduce((shown, session) => markStopping(shown, session.id), page)
    );
    try {
      const ids = sessions.map(session => session.id);
      const outcomes = await unwrap(
        host.api.POST('/api/sessions/terminate', { body: { sessions: ids, force: false } })
      );
      tell(outcomes);
    } catch (error) {
      host.notify('error', say(error));
    }
    void client.invalidateQueries({ queryKey: keys.sessions });
  };

  function tell({ succeeded, failed, results }: Schemas['SessionOutcomes']): void {
    if (succeeded) {
      host.notify('success', t('sessionList.stoppedMany', { count: succeeded }));
    }
    if (failed) {
      const reason = say(results.find(result => result.error)?.error ?? '');
      host.notify('error', t('sessionList.notStopped', { count: failed, reason }));
    }
  }
}
