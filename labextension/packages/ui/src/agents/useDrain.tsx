/** Letting nothing new start on a node, for a reason, and taking that back. */
import type { Agent } from '@backendai/api';
import { useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Field } from '../kit/Field';
import { FormDialog } from '../kit/FormDialog';
import { ask } from '../nouns/client';
import { useAct } from '../nouns/useAct';
import { keys } from '../queries';

export interface Draining {
  /** Ask for the reason; the dialog does the rest. */
  drain(agent: Agent): void;
  undrain(agent: Agent): Promise<boolean>;
  busy: boolean;
  dialog: ReactNode;
}

export const pathOf = ({ id }: Agent): string => `/api/agents/${encodeURIComponent(id)}`;

export function useDrain(): Draining {
  const { t } = useTranslation();
  const host = useHost();
  const act = useAct(...keys.nodes);
  const [agent, setAgent] = useState<Agent | null>(null);
  const [open, setOpen] = useState(false);
  const [reason, setReason] = useState('');
  const [by, setBy] = useState('');
  const undrain = (node: Agent): Promise<boolean> =>
    act.run(
      () => ask(host, 'POST', `${pathOf(node)}/undrain`),
      t('nodes.undrained', { name: node.name })
    );
  const drain = async (node: Agent): Promise<void> => {
    const body = {
      reason: reason.trim(),
      ...(by ? { by: new Date(by).toISOString() } : {})
    };
    const ok = await act.send(
      () => ask(host, 'POST', `${pathOf(node)}/drain`, { body }),
      t('nodes.drained', { name: node.name }),
      () => void undrain(node)
    );
    if (ok) {
      setOpen(false);
    }
  };
  const dialog = agent ? (
    <FormDialog
      open={open}
      title={t('nodes.drainTitle', { name: agent.name })}
      submit={t('nodes.drain')}
      cancel={t('form.cancel')}
      busy={act.busy}
      error={act.refused}
      blocked={reason.trim() ? undefined : t('queue.giveReason')}
      onSubmit={() => void drain(agent)}
      onClose={() => {
        setOpen(false);
        act.forget();
      }}
    >
      <p>{t('nodes.drainText')}</p>
      <Field
        label={t('queue.holdReason')}
        help={t('queue.reasonHelp')}
        value={reason}
        onChange={setReason}
      />
      <Field
        label={t('nodes.drainBy')}
        optional={t('form.optional')}
        help={t('nodes.drainByHelp')}
        type="datetime-local"
        value={by}
        onChange={setBy}
      />
    </FormDialog>
  ) : null;
  return {
    drain: node => {
      setAgent(node);
      setReason('');
      setBy('');
      setOpen(true);
    },
    undrain,
    busy: act.busy,
    dialog
  };
}
