import type { Session } from '@backendai/api';
import { Plus } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import { useLooksOnly } from '../pages/useLooksOnly';

/**
 * The JupyterHub server for a new session: null is the default one.
 *
 * JupyterHub leads from the default server's launch page straight into that server
 * while it runs, so the next session needs a name of its own.
 */
export function freeServer(user: string, live: Session[]): string | null {
  const own = live.filter(session => session.attachment?.user === user);
  const taken = new Set(own.map(session => session.attachment?.server));
  if (!taken.has('')) {
    return null;
  }
  let number = 2;
  while (taken.has(`session-${number}`)) {
    number += 1;
  }
  return `${encodeURIComponent(user)}/session-${number}`;
}

/** Leads to the launch form, whom it is open to. */
export function NewSession(): JSX.Element | null {
  const { t } = useTranslation();
  const host = useHost();
  if (useLooksOnly()) {
    return null;
  }
  return (
    <Button
      kind="primary"
      icon={<Plus size={16} aria-hidden />}
      href={host.hrefOf('/launch') ?? undefined}
      onClick={event => {
        const modified = event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
        if (!modified) {
          event.preventDefault();
          host.open('/launch');
        }
      }}
    >
      {t('sessions.new')}
    </Button>
  );
}
