/** People are told of their sessions that end, whatever they look at meanwhile. */
import type { Me } from '@backendai/api';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { keys } from '../queries';
import { gatherEnds, readFact, sayEnds } from './ends';

export function Endings(): null {
  const { t } = useTranslation();
  const { listen, notify } = useHost();
  const client = useQueryClient();
  // What is told in a moment is told in the language of then.
  const told = useRef({ t, notify });
  useEffect(() => {
    told.current = { t, notify };
  });
  useEffect(() => {
    const hear = gatherEnds(ended =>
      sayEnds(ended, told.current.t).forEach(({ level, text }) =>
        told.current.notify(level, text)
      )
    );
    return listen({
      onState: () => undefined,
      onEvent: received => {
        const event = readFact(received);
        if (event) {
          hear(event, client.getQueryData<Me>(keys.me)?.name);
        }
      }
    });
  }, [client, listen]);
  return null;
}
