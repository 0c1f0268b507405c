/** What can be done with nouns besides changing their fields: done, told, taken back. */
import { type Me } from '@backendai/api';
import { useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { TypedConfirm } from '../kit/TypedConfirm';
import { listKey } from '../lists/list';
import { changeMany, nounKeys, purgeMany, type BulkAnswer } from './client';
import { mayChange, type AnyNoun, type AnyRow, type NounName, type NounVerb } from './noun';
import { isSuperadmin } from './roles';
import { nounWords } from './words';
import { useFailure } from '../wording';

type Verb = NounVerb<AnyRow>;

export interface Verbs {
  /** What can be done with this one, by this person. */
  of(row: AnyRow, me: Me): Verb[];
  /** Do it, or ask first; tells whether it was done. */
  run(verb: Verb, rows: AnyRow[]): Promise<boolean>;
  dialogs: ReactNode;
}

/** What somebody may do with them, of those to whom it can be done. */
export const verbsOf = (noun: AnyNoun, me: Me): Verb[] =>
  ((noun.verbs ?? []) as unknown as Verb[]).filter(
    verb => verb.by !== 'superadmin' || isSuperadmin(me)
  );

export const admits = (noun: AnyNoun, verb: Verb, row: AnyRow, me: Me): boolean =>
  mayChange(noun, row, me) && (verb.when === undefined || verb.when(row, me));

/** Everything that shows nouns of this kind asks again. */
export function useRefresh(noun: NounName): () => Promise<void> {
  const client = useQueryClient();
  return async () => {
    await client.invalidateQueries({ queryKey: listKey(noun) });
    await client.invalidateQueries({ queryKey: nounKeys.all(noun) });
  };
}

interface Asked {
  verb: Verb;
  rows: AnyRow[];
  done(ok: boolean): void;
}

export function useVerbs(noun: AnyNoun, onPurged?: () => void): Verbs {
  const { t } = useTranslation();
  const host = useHost();
  const say = useFailure();
  const words = nounWords(t, noun.name);
  const refresh = useRefresh(noun.name);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [busy, setBusy] = useState(false);

  const tell = (
    key: string,
    rows: AnyRow[],
    answer: BulkAnswer,
    undo?: () => void
  ): boolean => {
    const failed = answer.results.filter(result => result.error);
    if (failed.length) {
      const reason = say(failed[0]?.error ?? '');
      const values = { failed: failed.length, count: rows.length, reason };
      host.notify('error', t(rows.length > 1 ? 'deeds.someFailed' : 'deeds.failed', values));
    }
    if (answer.succeeded) {
      const name =
        rows.length > 1 ? words.say('count', { count: answer.succeeded }) : rows[0]?.name;
      host.notify(
        'success',
        t(`deeds.${key}.done`, { name }),
        failed.length ? undefined : undo
      );
    }
    return failed.length === 0;
  };

  const attempt = async (work: () => Promise<boolean>): Promise<boolean> => {
    try {
      return await work();
    } catch (error) {
      host.notify('error', t('deeds.failed', { reason: say(error) }));
      return false;
    } finally {
      await refresh();
    }
  };

  const change = (verb: Verb, rows: AnyRow[]): Promise<boolean> =>
    attempt(async () => {
      const ids = rows.map(row => row.id);
      const fields = verb.change?.fields ?? {};
      const back = verb.change?.undo;
      const undo =
        back &&
        (() =>
          void attempt(async () => {
            const answer = await changeMany(host, noun.name, ids, back);
            return answer.failed === 0;
          }));
      return tell(verb.key, rows, await changeMany(host, noun.name, ids, fields), undo);
    });

  const purge = (verb: Verb, rows: AnyRow[]): Promise<boolean> =>
    attempt(async () => {
      const ids = rows.map(row => row.id);
      const done = tell(verb.key, rows, await purgeMany(host, noun.name, ids));
      if (done) {
        onPurged?.();
      }
      return done;
    });

  const close = (ok: boolean): void => {
    asked?.done(ok);
    setAsked(null);
    setBusy(false);
  };
  const { Dialog } = asked?.verb ?? {};
  const name = asked
    ? asked.rows.length === 1
      ? asked.rows[0]?.name
      : words.say('count', { count: asked.rows.length })
    : '';
  const word =
    asked?.rows.length === 1 ? (asked.rows[0]?.name ?? '') : String(asked?.rows.length ?? 0);
  const dialogs = (
    <>
      <TypedConfirm
        open={asked?.verb.purges === true}
        title={t('deeds.purge.title', { name })}
        word={word}
        label={t('deeds.purge.label', { word })}
        blocked={t('deeds.purge.blocked')}
        confirm={t('deeds.purge.confirm')}
        cancel={t('form.cancel')}
        busy={busy}
        onCancel={() => close(false)}
        onConfirm={() => {
          if (asked) {
            setBusy(true);
            void purge(asked.verb, asked.rows).then(close);
          }
        }}
      >
        <p>{words.say('purgeText')}</p>
        {asked && asked.rows.length > 1 ? (
          <p className="bai-help">{asked.rows.map(row => row.name).join(', ')}</p>
        ) : null}
      </TypedConfirm>
      {asked && Dialog ? (
        <Dialog
          row={asked.rows[0] as AnyRow}
          onClose={() => {
            close(true);
            void refresh();
          }}
        />
      ) : null}
    </>
  );

  return {
    of: (row, me) => verbsOf(noun, me).filter(verb => admits(noun, verb, row, me)),
    run: (verb, rows) =>
      verb.change ? change(verb, rows) : new Promise(done => setAsked({ verb, rows, done })),
    dialogs
  };
}
