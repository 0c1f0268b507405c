/** What else can be done to a session: hold, release, reorder, end by force, copy. */
import { unwrap, type Session, type SessionPage, type ShownSession } from '@backendai/api';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import {
  ArrowUpDown,
  Code,
  CopyPlus,
  Link2,
  OctagonX,
  Pause,
  Pencil,
  Play,
  SquareTerminal
} from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { guess } from '../guess';
import { useHost } from '../host';
import { ConfirmDialog } from '../kit/ConfirmDialog';
import { Field } from '../kit/Field';
import { FormDialog } from '../kit/FormDialog';
import type { MenuEntry } from '../kit/Menu';
import { writeCommand, writePython } from '../launch/code';
import { launchAddress } from '../launch/address';
import { keys, meQuery } from '../queries';
import { useLooksOnly } from '../pages/useLooksOnly';
import { copyText } from '../secure';
import { canStop, isEnded, isQueued } from './status';
import { wishOf } from './again';
import { describeHold, markChanged, updateShown } from './view';
import { useFailure } from '../wording';

type Dialog = 'hold' | 'priority' | 'rename' | 'force' | null;

/** How the service says that somebody keeps a session from starting. */
const HELD = /^held\b/i;

interface Options {
  session: ShownSession | undefined;
  /** Whether the reader administers sessions of others. */
  administers: boolean;
}

export function useVerbs({ session, administers }: Options): {
  entries: MenuEntry[];
  dialogs: ReactNode;
} {
  const { t } = useTranslation();
  const host = useHost();
  const say = useFailure();
  const [dialog, setDialog] = useState<Dialog>(null);
  const change = useChange(session);
  const looksOnly = useLooksOnly();
  if (!session) {
    return { entries: [], dialogs: null };
  }
  const copy = (text: string): void => {
    void copyText(text).then(
      () => host.notify('success', t('verbs.copied')),
      () => host.notify('error', t('verbs.notCopied'))
    );
  };
  const open = (next: Dialog): void => {
    change.reset();
    setDialog(next);
  };
  const queued = isQueued(session.status);
  const held = HELD.test(session.reason);
  const wish = wishOf(session);
  const release: MenuEntry = {
    key: 'release',
    text: t('verbs.release'),
    icon: <Play size={16} aria-hidden />,
    onSelect: () => change.mutate({ verb: 'release' })
  };
  const hold: MenuEntry = {
    key: 'hold',
    text: t('verbs.hold'),
    icon: <Pause size={16} aria-hidden />,
    onSelect: () => open('hold')
  };
  const entries: (MenuEntry | false)[] = [
    !looksOnly && queued && (held ? release : hold),
    !looksOnly &&
      queued && {
        key: 'priority',
        text: t('verbs.priority'),
        icon: <ArrowUpDown size={16} aria-hidden />,
        onSelect: () => open('priority')
      },
    !looksOnly &&
      !isEnded(session.status) && {
        key: 'rename',
        text: t('verbs.rename'),
        icon: <Pencil size={16} aria-hidden />,
        onSelect: () => open('rename')
      },
    !looksOnly && {
      key: 'again',
      text: t('verbs.again'),
      icon: <CopyPlus size={16} aria-hidden />,
      onSelect: () => host.open(launchAddress(wish))
    },
    session.type === 'interactive' && {
      key: 'python',
      text: t('verbs.python'),
      icon: <Code size={16} aria-hidden />,
      onSelect: () => copy(writePython(wish))
    },
    session.type === 'interactive' && {
      key: 'command',
      text: t('verbs.command'),
      icon: <SquareTerminal size={16} aria-hidden />,
      onSelect: () => copy(writeCommand(wish))
    },
    {
      key: 'id',
      text: t('verbs.id'),
      icon: <Link2 size={16} aria-hidden />,
      onSelect: () => copy(session.id)
    },
    administers &&
      !queued &&
      (canStop(session.status) || session.status === 'TERMINATING') && {
        key: 'force',
        text: t('verbs.force'),
        icon: <OctagonX size={16} aria-hidden />,
        danger: true,
        onSelect: () => open('force')
      }
  ];
  const close = (): void => setDialog(null);
  const ofDialog = {
    onClose: close,
    busy: change.isPending,
    error: change.error ? say(change.error) : undefined
  };
  return {
    entries: entries.filter(entry => entry !== false),
    dialogs: (
      <>
        <HoldDialog
          open={dialog === 'hold'}
          onHold={reason => change.mutate({ verb: 'hold', reason }, { onSuccess: close })}
          {...ofDialog}
        />
        <PriorityDialog
          open={dialog === 'priority'}
          now={session.priority}
          onSet={priority =>
            change.mutate({ verb: 'priority', priority }, { onSuccess: close })
          }
          {...ofDialog}
        />
        <RenameDialog
          key={String(dialog === 'rename')}
          open={dialog === 'rename'}
          now={session.name}
          onSet={name => change.mutate({ verb: 'rename', name }, { onSuccess: close })}
          {...ofDialog}
        />
        <ConfirmDialog
          open={dialog === 'force'}
          title={t('verbs.forceTitle', { name: session.name })}
          confirm={t('verbs.force')}
          cancel={t('list.cancel')}
          onCancel={close}
          onConfirm={() => {
            close();
            change.mutate({ verb: 'force' });
          }}
        >
          <p>{t('verbs.forceText')}</p>
          <p className="bai-loss">{t('sessions.stopFiles')}</p>
        </ConfirmDialog>
      </>
    )
  };
}

type Wanted =
  | { verb: 'hold'; reason: string }
  | { verb: 'release' }
  | { verb: 'force' }
  | { verb: 'rename'; name: string }
  | { verb: 'priority'; priority: number };

/** What is certain to be different, as soon as the service has taken it. */
function foresee(wanted: Wanted, isOwn: boolean): Partial<Session> {
  switch (wanted.verb) {
    case 'rename':
      return { name: wanted.name };
    case 'priority':
      return { priority: wanted.priority };
    case 'hold':
      return { reason: describeHold(wanted.reason, isOwn) };
    case 'release':
      return { reason: '' };
    case 'force':
      return {};
  }
}

function useChange(session: Session | undefined) {
  const host = useHost();
  const client = useQueryClient();
  const { api } = host;
  const id = session?.id ?? '';
  const params = { path: { session_id: id } };
  const ask = async (wanted: Wanted): Promise<Session | null> => {
    switch (wanted.verb) {
      case 'hold':
        return unwrap(
          api.POST('/api/sessions/{session_id}/hold', {
            params,
            body: { reason: wanted.reason }
          })
        );
      case 'release':
        return unwrap(api.POST('/api/sessions/{session_id}/release', { params }));
      case 'force':
        return unwrap(
          api.POST('/api/sessions/{session_id}/terminate', { params, body: { force: true } })
        );
      case 'rename':
        return unwrap(
          api.PATCH('/api/sessions/{session_id}', { params, body: { name: wanted.name } })
        );
      case 'priority': {
        const { priority } = wanted;
        const body = { sessions: [id], priority };
        const { results } = await unwrap(api.POST('/api/sessions/priority', { body }));
        const refused = results.find(result => result.error);
        if (refused?.error) {
          throw new Error(refused.error);
        }
        return null;
      }
    }
  };
  const say = useFailure();
  const me = useQuery(meQuery(host)).data?.name;
  return useMutation({
    mutationFn: ask,
    onMutate: async wanted => {
      const changes = foresee(wanted, session?.owner === me);
      const back = await Promise.all([
        guess<SessionPage>(client, { queryKey: keys.sessions }, page =>
          markChanged(page, id, changes)
        ),
        guess<ShownSession>(client, { queryKey: keys.session(id), exact: true }, shown => ({
          ...shown,
          ...changes
        }))
      ]);
      return () => back.forEach(takeBack => takeBack());
    },
    onSuccess: answer => {
      if (answer) {
        client.setQueryData<ShownSession>(
          keys.session(id),
          old => old && updateShown(old, answer)
        );
      }
      void client.invalidateQueries({ queryKey: keys.session(id) });
      void client.invalidateQueries({ queryKey: keys.sessions });
    },
    onError: (error, { verb }, takeBack) => {
      takeBack?.();
      void client.invalidateQueries({ queryKey: keys.session(id), exact: true });
      void client.invalidateQueries({ queryKey: keys.sessions });
      // The others are asked for in dialogs, which say it: nobody hears notices behind them.
      if (verb === 'release' || verb === 'force') {
        host.notify('error', say(error));
      }
    }
  });
}

interface DialogProps {
  open: boolean;
  busy: boolean;
  /** Why it was refused. */
  error: string | undefined;
  onClose(): void;
}

function HoldDialog(props: DialogProps & { onHold(reason: string): void }): JSX.Element {
  const { t } = useTranslation();
  const [reason, setReason] = useState('');
  return (
    <FormDialog
      open={props.open}
      busy={props.busy}
      error={props.error}
      title={t('verbs.holdTitle')}
      submit={t('verbs.hold')}
      cancel={t('list.cancel')}
      blocked={reason.trim() ? undefined : t('verbs.reasonMissing')}
      onClose={props.onClose}
      onSubmit={() => props.onHold(reason.trim())}
    >
      <p className="bai-help">{t('verbs.holdText')}</p>
      <Field label={t('verbs.reason')} value={reason} onChange={setReason} />
    </FormDialog>
  );
}

interface PriorityProps extends DialogProps {
  now: number;
  onSet(priority: number): void;
}

function PriorityDialog(props: PriorityProps): JSX.Element {
  const { t } = useTranslation();
  const [text, setText] = useState(String(props.now));
  const priority = /^\d{1,3}$/.test(text.trim()) ? Number(text) : null;
  const wrong = priority === null || priority > 100;
  return (
    <FormDialog
      open={props.open}
      busy={props.busy}
      error={props.error}
      title={t('verbs.priorityTitle')}
      submit={t('list.save')}
      cancel={t('list.cancel')}
      blocked={wrong ? t('verbs.priorityWrong') : undefined}
      onClose={props.onClose}
      onSubmit={() => {
        if (priority !== null) {
          props.onSet(priority);
        }
      }}
    >
      <Field
        label={t('sessionList.priority')}
        help={t('verbs.priorityHelp')}
        decimal
        value={text}
        onChange={setText}
      />
    </FormDialog>
  );
}

/** As the service takes it. */
const NAME = /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,62}[A-Za-z0-9])?$/;

interface RenameProps extends DialogProps {
  now: string;
  onSet(name: string): void;
}

function RenameDialog(props: RenameProps): JSX.Element {
  const { t } = useTranslation();
  const [text, setText] = useState(props.now);
  const name = text.trim();
  const blocked = NAME.test(name)
    ? name === props.now
      ? t('verbs.renameSame')
      : undefined
    : t('verbs.renameWrong');
  return (
    <FormDialog
      open={props.open}
      busy={props.busy}
      error={props.error}
      title={t('verbs.renameTitle')}
      submit={t('list.save')}
      cancel={t('list.cancel')}
      blocked={blocked}
      onClose={props.onClose}
      onSubmit={() => props.onSet(name)}
    >
      <Field
        label={t('sessions.name')}
        help={t('verbs.renameHelp')}
        value={text}
        onChange={setText}
      />
    </FormDialog>
  );
}
