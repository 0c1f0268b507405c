/** What if: the scheduler in a time of its own, as things are and with something changed. */
import type { Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { FlaskConical } from 'lucide-react';
import { useId, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import { Field } from '../kit/Field';
import { Progress } from '../kit/Progress';
import { SelectField } from '../kit/SelectField';
import { Switch } from '../kit/Switch';
import { TextArea } from '../kit/TextArea';
import { AmountsField } from '../nouns/AmountsField';
import { ask } from '../nouns/client';
import { linesOf, readDraft, type Draft, type Kind } from '../nouns/kinds';
import { ReferenceField } from '../nouns/ReferenceField';
import { Refusal } from '../nouns/Refusal';
import { readsSite } from '../nouns/roles';
import { Siblings } from '../nouns/Siblings';
import { SpecialField } from '../nouns/SpecialField';
import { WordsField } from '../nouns/WordsField';
import { valueWord } from '../nouns/words';
import { PageHeading } from '../PageHeading';
import { meQuery } from '../queries';
import { usePolling } from '../stream';
import { MIN_RUNTIME, RULES } from './PreemptionPage';
import { Quotas, readQuota, TraceField, type Quota } from './SimulateFields';
import { SimulationResult } from './SimulationResult';

type Report = Schemas['SimulationReport'];
const SLOTS = { type: 'slots', limits: false } as const;
const TIME: Kind = { type: 'duration', least: 1, most: 10_000_000_000 };
const DELAY: Kind = { ...TIME, least: 0 };
const WHOLE = /^-?\d{1,9}$/;

export interface Question {
  drain: string;
  slots: Record<string, string>;
  count: string;
  runTime: Draft;
  project: string;
  owner: string;
  group: string;
  submit: Draft;
  jobPriority: string;
  preemptible: boolean;
  quotas: Quota[];
  sequencer: string;
  placement: string;
  weights: string;
  preemption: string;
  rules: Record<string, string>;
  minRuntime: Draft;
  usual: Draft;
  trace: string;
}

export const NOTHING: Question = {
  drain: '',
  slots: {},
  count: '1',
  runTime: '1h',
  project: 'default',
  owner: '',
  group: '',
  submit: '',
  jobPriority: '0',
  preemptible: true,
  quotas: [],
  sequencer: '',
  placement: '',
  weights: '',
  preemption: '',
  rules: {},
  minRuntime: '~asItIs',
  usual: '4h',
  trace: ''
};

const read = (kind: Kind, draft: Draft): unknown => {
  const reading = readDraft(kind, draft);
  return reading.wrong === undefined ? reading.value : undefined;
};

/** `vision=2` on each line. */
export function readWeights(text: string): Record<string, number> | null {
  const found: Record<string, number> = {};
  for (const line of linesOf(text)) {
    const [name = '', weight = ''] = line.split('=').map(part => part.trim());
    if (!name || !(Number(weight) > 0)) {
      return null;
    }
    found[name] = Number(weight);
  }
  return found;
}

export function toRequest(question: Question): Record<string, unknown> | null {
  const slots = read(SLOTS, question.slots) as Record<string, unknown> | undefined;
  const weights = readWeights(question.weights);
  const runTime = read(TIME, question.runTime);
  const usual = read(TIME, question.usual);
  const submit = question.submit === '' ? 0 : read(DELAY, question.submit);
  const quotas = question.quotas.map(readQuota).filter(quota => quota !== null);
  const wrong = [slots, runTime, usual, submit].includes(undefined) || weights === null;
  const whole = WHOLE.test(question.jobPriority.trim());
  if (wrong || !whole || quotas.length < question.quotas.length) {
    return null;
  }
  const minRuntime = read(MIN_RUNTIME, question.minRuntime);
  const chosen = Object.entries(question.rules).filter(([, rule]) => rule);
  const preemption = {
    ...Object.fromEntries(chosen),
    ...(question.preemption ? { enabled: question.preemption === 'on' } : {}),
    ...(typeof minRuntime === 'number' ? { min_runtime: minRuntime } : {})
  };
  const add = {
    slots,
    count: Number(question.count) || 1,
    run_time: runTime,
    project: question.project.trim() || 'default',
    ...(question.owner.trim() ? { owner: question.owner.trim() } : {}),
    ...(question.group ? { resource_group: question.group } : {}),
    ...(submit ? { submit } : {}),
    ...(Number(question.jobPriority) ? { job_priority: Number(question.jobPriority) } : {}),
    ...(question.preemptible ? {} : { preemptible: false })
  };
  return {
    usual_run_time: usual,
    ...(linesOf(question.drain).length ? { drain: linesOf(question.drain) } : {}),
    ...(quotas.length ? { quotas } : {}),
    ...(Object.keys(slots ?? {}).length ? { add: [add] } : {}),
    ...(question.sequencer ? { sequencer: question.sequencer } : {}),
    ...(question.placement ? { placement: question.placement } : {}),
    ...(Object.keys(weights).length ? { weights } : {}),
    ...(Object.keys(preemption).length ? { preemption } : {}),
    ...(question.trace.trim() ? { trace: question.trace } : {})
  };
}

export default function SimulatePage(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const [question, setQuestion] = useState(NOTHING);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const [report, setReport] = useState<Report | null>(null);
  const [strict, setStrict] = useState(false);
  // What a file says comes later, when other things may have been typed.
  const set = (next: Partial<Question>): void => setQuestion(old => ({ ...old, ...next }));
  const request = toRequest(question);
  if (strict && request) {
    setStrict(false);
  }
  // What is not complete yet is told to who asks with it, everything else at once.
  const marked =
    request === null && (strict || toRequest({ ...question, quotas: [] }) === null);
  const status = useId();
  const simulate = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      setReport(
        await ask<Report>(host, 'POST', '/api/schedule/simulate', { body: request ?? {} })
      );
    } catch (reason) {
      setError(reason instanceof Error ? reason : new Error(String(reason)));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <PageHeading title={t('simulate.title')} />
      <Siblings path="/admin/scheduler/simulate" />
      <p className="bai-lead">{t('simulate.about')}</p>
      <form
        className="bai-form"
        onSubmit={event => {
          event.preventDefault();
          setStrict(request === null);
          if (request && !busy) {
            void simulate();
          }
        }}
      >
        <QuestionFields question={question} strict={strict} set={set} />
        <div className="bai-form-bar">
          <span id={status} className="bai-help" role="status">
            {marked ? t('form.correctFirst') : ''}
          </span>
          <Button
            kind="primary"
            submits
            icon={<FlaskConical size={16} aria-hidden />}
            busy={busy}
            {...(marked ? { 'aria-disabled': true, 'aria-describedby': status } : {})}
          >
            {t('simulate.run')}
          </Button>
        </div>
      </form>
      {busy ? <HowFar /> : null}
      {error ? <Refusal error={error} /> : null}
      {report ? <SimulationResult report={report} /> : null}
    </>
  );
}

function QuestionFields(props: {
  question: Question;
  strict: boolean;
  set(next: Partial<Question>): void;
}): JSX.Element {
  const { t } = useTranslation();
  const { question, strict, set } = props;
  const me = useQuery(meQuery(useHost())).data;
  const asItIs = { value: '', text: t('special.asItIs') };
  const wrongTime = (draft: Draft): string | undefined =>
    readDraft(TIME, draft).wrong === undefined ? undefined : t('wrong.duration');
  return (
    <>
      <section className="bai-card">
        <h2>{t('simulate.more')}</h2>
        <div className="bai-form-grid">
          <div data-wide>
            <AmountsField
              kind={SLOTS}
              label={t('simulate.slots')}
              help={t('simulate.slotsHelp')}
              rows={question.slots}
              error={
                readDraft(SLOTS, question.slots).wrong ? t('simulate.wrongSlots') : undefined
              }
              onChange={slots => set({ slots })}
            />
          </div>
          <Field
            label={t('simulate.count')}
            value={question.count}
            decimal
            onChange={count => set({ count })}
          />
          <SpecialField
            kind={TIME}
            label={t('simulate.runTime')}
            draft={question.runTime}
            error={wrongTime(question.runTime)}
            onChange={runTime => set({ runTime })}
          />
          <Field
            label={t('fields.any.project')}
            value={question.project}
            onChange={project => set({ project })}
          />
          <Field
            label={t('simulate.owner')}
            optional={t('form.optional')}
            help={t('simulate.ownerHelp')}
            value={question.owner}
            onChange={owner => set({ owner })}
          />
          <ReferenceField
            noun="resource-groups"
            label={t('simulate.group')}
            draft={question.group}
            none={t('simulate.groupUsual')}
            onChange={group => set({ group })}
          />
          <SpecialField
            kind={DELAY}
            label={t('simulate.submit')}
            draft={question.submit === '' ? '0s' : question.submit}
            error={
              question.submit === '' || readDraft(DELAY, question.submit).wrong === undefined
                ? undefined
                : t('wrong.duration')
            }
            onChange={submit => set({ submit })}
          />
          <Field
            label={t('simulate.jobPriority')}
            value={question.jobPriority}
            error={
              WHOLE.test(question.jobPriority.trim()) ? undefined : t('simulate.wrongPriority')
            }
            onChange={jobPriority => set({ jobPriority })}
          />
          <Switch
            label={t('simulate.preemptible')}
            checked={question.preemptible}
            onChange={preemptible => set({ preemptible })}
          />
        </div>
      </section>
      <section className="bai-card">
        <h2>{t('simulate.nodes')}</h2>
        <div className="bai-form-grid">
          {me && readsSite(me) ? (
            <div data-wide>
              <WordsField
                noun="agents"
                label={t('simulate.drain')}
                help={t('simulate.drainHelp')}
                draft={question.drain}
                onChange={drain => set({ drain })}
              />
            </div>
          ) : null}
          <SelectField
            label={t('simulate.placement')}
            value={question.placement}
            options={[
              asItIs,
              ...['fragmentation', 'concentrated', 'dispersed', 'roundrobin'].map(value => ({
                value,
                text: valueWord(t, 'agent_selection_strategy', value)
              }))
            ]}
            onChange={placement => set({ placement })}
          />
        </div>
      </section>
      <section className="bai-card">
        <h2>{t('simulate.order')}</h2>
        <div className="bai-form-grid">
          <SelectField
            label={t('fields.any.scheduler')}
            value={question.sequencer}
            options={[
              asItIs,
              ...['fifo', 'lifo', 'drf', 'fair-share'].map(value => ({
                value,
                text: valueWord(t, 'scheduler', value)
              }))
            ]}
            onChange={sequencer => set({ sequencer })}
          />
          <SelectField
            label={t('simulate.preemption')}
            value={question.preemption}
            options={[
              asItIs,
              { value: 'on', text: t('form.yes') },
              { value: 'off', text: t('form.no') }
            ]}
            onChange={preemption => set({ preemption })}
          />
          {question.preemption !== 'off'
            ? Object.entries(RULES).map(([rule, values]) => (
                <SelectField
                  key={rule}
                  label={t(`fields.resource-groups.scheduler_opts.preemption.${rule}`)}
                  value={question.rules[rule] ?? ''}
                  options={[
                    asItIs,
                    ...values.map(value => ({ value, text: valueWord(t, rule, value) }))
                  ]}
                  onChange={value => set({ rules: { ...question.rules, [rule]: value } })}
                />
              ))
            : null}
          <TextArea
            label={t('simulate.weights')}
            help={t('simulate.weightsHelp')}
            value={question.weights}
            rows={2}
            placeholder="vision=2"
            error={readWeights(question.weights) === null ? t('wrong.number') : undefined}
            onChange={weights => set({ weights })}
          />
        </div>
      </section>
      <Quotas quotas={question.quotas} strict={strict} onChange={quotas => set({ quotas })} />
      <section className="bai-card">
        <h2>{t('simulate.from')}</h2>
        <div className="bai-form-grid">
          <SpecialField
            kind={TIME}
            label={t('simulate.usual')}
            help={t('simulate.usualHelp')}
            draft={question.usual}
            error={wrongTime(question.usual)}
            onChange={usual => set({ usual })}
          />
          <TraceField trace={question.trace} onChange={trace => set({ trace })} />
        </div>
      </section>
    </>
  );
}

function HowFar(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { data } = useQuery({
    queryKey: ['simulation'],
    queryFn: ({ signal }) =>
      ask<Schemas['SimulationProgress']>(host, 'GET', '/api/schedule/simulate', { signal }),
    refetchInterval: usePolling(),
    enabled: host.visible,
    gcTime: 0
  });
  const part = data?.running ? data.part : 0;
  return (
    <Progress
      label={t('simulate.running')}
      text={`${Math.round(part * 100)} %`}
      value={part}
      max={data?.running ? 1 : null}
    />
  );
}
