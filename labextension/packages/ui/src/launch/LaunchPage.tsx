/** Asking for a session: what it shall have, what would become of it, and one's own past. */
import { unwrap } from '@backendai/api';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../address';
import { useHost } from '../host';
import { Segmented } from '../kit/Segmented';
import { Skeleton } from '../kit/States';
import { LoadError } from '../LoadError';
import { PageHeading } from '../PageHeading';
import { keys, meQuery, pageQuery } from '../queries';
import { newId } from '../secure';
import { freeServer } from '../sessions/NewSession';
import { firstLivePage } from '../sessions/view';
import { readWish, writeWish } from './address';
import { BatchFields, CommandField } from './BatchFields';
import { findBatchErrors, startBatch, writeBatch, type BatchState } from './batch';
import type { LaunchSpec } from './form';
import { useLaunchHistory } from './history';
import { LaunchForm, type LaunchFormHandle } from './LaunchForm';
import { Past } from './Past';
import { StartCard } from './StartCard';
import { useFindFolders, useLaunchSupply } from './useLaunchSupply';
import type { AskFirst } from './useDryRun';
import type { Supply } from './supply';
import type { Wish } from './wish';

type Kind = 'interactive' | 'batch';

export function LaunchPage(): JSX.Element {
  const { t } = useTranslation();
  const { supply, error, retry } = useLaunchSupply();
  const [address] = useAddress();
  // A choice from the past begins the form anew; what is typed does not.
  const [round, setRound] = useState(0);
  const given = useRef(readWish(address));
  const begin = useCallback((wish: Partial<Wish>) => {
    given.current = wish;
    setRound(old => old + 1);
  }, []);
  return (
    <>
      <PageHeading title={t('launchPage.title')} />
      {error ? <LoadError error={error} stale={supply !== null} onRetry={retry} /> : null}
      {!supply && !error ? <Skeleton rows={6} label={t('state.loading')} /> : null}
      {supply ? (
        <Launch key={round} supply={supply} given={given.current} onBegin={begin} />
      ) : null}
    </>
  );
}

interface Props {
  supply: Supply;
  given: Partial<Wish>;
  onBegin(wish: Partial<Wish>): void;
}

function Launch({ supply, given, onBegin }: Props): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const [kind, setKind] = useState<Kind>(given.type === 'batch' ? 'batch' : 'interactive');
  const [spec, setSpec] = useState<LaunchSpec | null>(null);
  const [batch, setBatch] = useState(() => startBatch(given));
  const [strict, setStrict] = useState(false);
  const [verdictAt, setVerdictAt] = useState<HTMLElement | null>(null);
  const handle = useRef<LaunchFormHandle>(null);
  const history = useLaunchHistory();
  const wish = useMemo(() => (spec ? join(spec, kind, batch) : null), [spec, kind, batch]);
  const ask = useAsk(kind, batch);
  useAddressOf(wish);
  const validate = (): boolean => {
    setStrict(true);
    const fine = handle.current?.validate() ?? true;
    return fine && (kind === 'interactive' || isFine(batch));
  };
  const submission = useSubmission(wish, validate, history.remember);
  return (
    <form
      className="bai-launch-page"
      noValidate
      onSubmit={event => {
        event.preventDefault();
        submission.submit();
      }}
    >
      <div className="bai-launch-fields">
        <Segmented<Kind>
          label={t('sessionList.type')}
          value={kind}
          onChange={(value: Kind) => setKind(value)}
          options={[
            { value: 'interactive', text: t('launchPage.interactive') },
            { value: 'batch', text: t('launchPage.batch') }
          ]}
        />
        <p className="bai-help">{t(`launchPage.${kind}Text`)}</p>
        {kind === 'batch' ? (
          <CommandField
            state={batch}
            strict={strict}
            onChange={change => setBatch(old => ({ ...old, ...change }))}
          />
        ) : null}
        <LaunchForm
          ref={handle}
          supply={supply}
          given={given}
          language={language}
          ask={ask}
          find={useFindFolders()}
          verdictAt={verdictAt}
          onChange={setSpec}
        />
        {kind === 'batch' ? (
          <BatchFields
            state={batch}
            strict={strict}
            onChange={change => setBatch(old => ({ ...old, ...change }))}
          />
        ) : null}
      </div>
      <aside className="bai-launch-aside" aria-label={t('launchPage.aside')}>
        <StartCard
          kind={kind}
          wish={wish}
          submission={submission}
          onPlace={setVerdictAt}
          onSave={title => wish && history.save(wish, title)}
        />
        <Past history={history} onChoose={onBegin} />
      </aside>
    </form>
  );
}

function isFine(batch: BatchState): boolean {
  return Object.keys(findBatchErrors(batch)).length === 0;
}

function join(spec: LaunchSpec, kind: Kind, batch: BatchState): Wish {
  return kind === 'batch' ? { ...spec, ...writeBatch(batch) } : { ...spec, type: kind };
}

/** Asks the scheduler about the whole wish, whichever part of it the form knows. */
function useAsk(kind: Kind, batch: BatchState): AskFirst {
  const { api } = useHost();
  // What is run says nothing of when it starts, and typing it asks nothing.
  const more = kind === 'batch' ? JSON.stringify(writeBatch({ ...batch, command: '' })) : '{}';
  return useCallback<AskFirst>(
    async (spec, signal) => {
      const given = JSON.parse(more) as Partial<Wish>;
      const command = kind === 'batch' ? { startup_command: ':' } : {};
      const body = { ...spec, type: kind, ...given, ...command };
      return unwrap(api.POST('/api/sessions/dry-run', { body: body as never, signal })).catch(
        () => null
      );
    },
    [api, kind, more]
  );
}

const PAUSE = 300;

/** The address is the form: it can be sent to somebody, and reloaded. */
function useAddressOf(wish: Wish | null): void {
  const [, setAddress] = useAddress();
  const text = wish ? writeWish(wish).toString() : null;
  const set = useRef(setAddress);
  useEffect(() => {
    set.current = setAddress;
  });
  useEffect(() => {
    if (text === null) {
      return undefined;
    }
    const timer = setTimeout(
      () => set.current(new URLSearchParams(text), { replace: true }),
      PAUSE
    );
    return () => clearTimeout(timer);
  }, [text]);
}

export interface Submission {
  busy: boolean;
  error: Error | null;
  submit(): void;
  /** Where JupyterHub asks for a session that people work in, with this choice. */
  href: string | null;
  /** Tell whether the form may be left for there, and remember it if so. */
  leave(): boolean;
}

function useSubmission(
  wish: Wish | null,
  validate: () => boolean,
  remember: (wish: Wish, title: string) => void
): Submission {
  const { t } = useTranslation();
  const host = useHost();
  const client = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const me = useQuery(meQuery(host)).data;
  const live = useQuery({
    ...pageQuery(host, firstLivePage(me?.name ?? ''), false),
    enabled: host.visible && me !== undefined
  }).data;
  const key = useRef({ of: '', value: '' });
  const start = async (): Promise<void> => {
    if (!wish || busy || !validate()) {
      return;
    }
    const text = JSON.stringify(wish);
    if (key.current.of !== text) {
      // The same wish sent twice, because an answer was lost, is one session.
      key.current = { of: text, value: newId() };
    }
    setBusy(true);
    setError(null);
    try {
      const session = await unwrap(
        host.api.POST('/api/sessions', {
          body: wish as never,
          headers: { 'Idempotency-Key': key.current.value }
        })
      );
      key.current = { of: '', value: '' };
      remember(wish, titleOf(wish));
      void client.invalidateQueries({ queryKey: keys.sessions });
      host.notify('success', t('launchPage.asked', { name: session.name }));
      host.open(`/sessions/${session.id}`);
    } catch (reason) {
      setError(reason instanceof Error ? reason : new Error(String(reason)));
    } finally {
      setBusy(false);
    }
  };
  const server = me && live ? freeServer(me.name, live.items) : null;
  return {
    busy,
    error,
    submit: () => void start(),
    href: wish ? `${host.launchHref(server)}#${spawnHash(wish)}` : null,
    leave: () => {
      const fine = wish !== null && validate();
      if (fine) {
        remember(wish, titleOf(wish));
      }
      return fine;
    }
  };
}

/** What JupyterHub's page reads its form from. */
function spawnHash(wish: Wish): string {
  const { image, name, project, resource_group, slots, shmem, mounts } = wish;
  const spec = { image, name, project, resource_group, slots, shmem, mounts };
  return new URLSearchParams({ spec: JSON.stringify(spec) }).toString();
}

function titleOf({ name, image, startup_command: command }: Wish): string {
  const line = command?.split('\n')[0] ?? '';
  return name ?? (line ? line.slice(0, 60) : image);
}
