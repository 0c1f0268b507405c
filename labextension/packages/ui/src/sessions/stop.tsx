/** Stopping a session: asked first, shown at once, taken back if it was refused. */
import type { Session, SessionPage, ShownSession } from '@backendai/api';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { ConfirmDialog } from '../kit/ConfirmDialog';
import { keys, terminateSession } from '../queries';
import { isQueued } from './status';
import { markStopping, replaceSession, updateShown } from './view';
import { useFailure } from '../wording';

export function useStopSession(): { ask(session: Session): void; dialog: ReactNode } {
  const { t } = useTranslation();
  const [asked, setAsked] = useState<Session | null>(null);
  const [open, setOpen] = useState(false);
  const stop = useStopMutation();
  const ask = (session: Session): void => {
    setAsked(session);
    setOpen(true);
  };
  const name = asked?.name ?? '';
  const dialog = (
    <ConfirmDialog
      open={open}
      title={t('sessions.stopTitle', { name })}
      confirm={t('sessions.stopConfirm')}
      cancel={t('sessions.stopCancel')}
      onCancel={() => setOpen(false)}
      onConfirm={() => {
        setOpen(false);
        if (asked) {
          stop.mutate(asked);
        }
      }}
    >
      {isQueued(asked?.status) ? (
        <p>{t('sessions.stopPending')}</p>
      ) : (
        <>
          <p>{t('sessions.stopText')}</p>
          <p className="bai-loss">{t('sessions.stopFiles')}</p>
        </>
      )}
    </ConfirmDialog>
  );
  return { ask, dialog };
}

function useStopMutation() {
  const { t } = useTranslation();
  const host = useHost();
  const say = useFailure();
  const client = useQueryClient();
  const change = (update: (page: SessionPage) => SessionPage): void => {
    client.setQueriesData<SessionPage>(
      { queryKey: keys.sessions },
      page => page && update(page)
    );
  };
  return useMutation({
    mutationFn: (session: Session) => terminateSession(host, session.id),
    onMutate: async session => {
      await client.cancelQueries({ queryKey: keys.sessions });
      change(page => markStopping(page, session.id));
    },
    onSuccess: answer => {
      change(page => replaceSession(page, answer));
      client.setQueryData<ShownSession>(
        keys.session(answer.id),
        old => old && updateShown(old, answer)
      );
    },
    onError: (error, session) => {
      host.notify(
        'error',
        t('sessions.stopFailed', { name: session.name, reason: say(error) })
      );
      // Not the row as it was: it may have moved on meanwhile.
      void client.invalidateQueries({ queryKey: keys.sessions });
    }
  });
}
