/** What a question about the future is asked with: guarantees and maxima, and a trace. */
import { Plus, X } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from '../kit/Button';
import { SelectField } from '../kit/SelectField';
import { TextArea } from '../kit/TextArea';
import { AmountsField } from '../nouns/AmountsField';
import { readDraft } from '../nouns/kinds';
import { PickText } from '../nouns/PickText';
import { ReferenceField } from '../nouns/ReferenceField';

/** What a domain, project or user would be guaranteed, and have at most. */
export interface Quota {
  scope: 'domain' | 'project' | 'user';
  name: string;
  guaranteed: Record<string, string>;
  maximum: Record<string, string>;
}

const SCOPES = { domain: 'domains', project: 'projects', user: 'users' } as const;
const FIXED = { type: 'slots', limits: false } as const;
const LIMIT = { type: 'slots', limits: true } as const;
const NONE: Quota = { scope: 'project', name: '', guaranteed: {}, maximum: {} };

/** What is wrong with *quota*, by field: the key of what is said about it. */
export function findQuotaErrors({ name, guaranteed, maximum }: Quota): {
  name?: string;
  guaranteed?: string;
  maximum?: string;
} {
  const says = [guaranteed, maximum].some(rows => Object.keys(rows).length);
  const fits = readDraft(FIXED, guaranteed).wrong === undefined;
  return {
    ...(name ? {} : { name: 'wrong.required' }),
    ...(says ? {} : { guaranteed: 'simulate.noQuota' }),
    ...(fits ? {} : { guaranteed: 'simulate.wrongSlots' }),
    ...(readDraft(LIMIT, maximum).wrong === undefined ? {} : { maximum: 'simulate.wrongSlots' })
  };
}

/** The request that *quota* is; null while it is not complete. */
export function readQuota(quota: Quota): Record<string, unknown> | null {
  const guaranteed = readDraft(FIXED, quota.guaranteed);
  const maximum = readDraft(LIMIT, quota.maximum);
  const complete = Object.keys(findQuotaErrors(quota)).length === 0;
  if (!complete || guaranteed.wrong !== undefined || maximum.wrong !== undefined) {
    return null;
  }
  return {
    scope: quota.scope,
    name: quota.name,
    guaranteed: guaranteed.value,
    maximum: Object.fromEntries(
      Object.entries(maximum.value as Record<string, unknown>).map(([slot, amount]) => [
        slot,
        amount === 'inf' ? null : amount
      ])
    )
  };
}

interface QuotasProps {
  quotas: readonly Quota[];
  /** Whether what is missing is told: somebody has asked without it. */
  strict: boolean;
  onChange(quotas: Quota[]): void;
}

export function Quotas({ quotas, strict, onChange }: QuotasProps): JSX.Element {
  const { t } = useTranslation();
  const change = (index: number, next: Partial<Quota>): void =>
    onChange(quotas.map((quota, at) => (at === index ? { ...quota, ...next } : quota)));
  const tell = (quota: Quota, field: 'name' | 'guaranteed' | 'maximum'): string | undefined => {
    const key = strict ? findQuotaErrors(quota)[field] : undefined;
    return key && t(key);
  };
  return (
    <section className="bai-card">
      <h2>{t('simulate.quotas')}</h2>
      <p className="bai-help">{t('simulate.quotasHelp')}</p>
      {quotas.map((quota, index) => (
        <div key={index} className="bai-form-grid">
          <SelectField
            label={t('simulate.scope')}
            value={quota.scope}
            options={Object.keys(SCOPES).map(scope => ({
              value: scope,
              text: t(`fields.any.${scope}`)
            }))}
            onChange={scope => change(index, { scope: scope as Quota['scope'], name: '' })}
          />
          <ReferenceField
            noun={SCOPES[quota.scope]}
            label={t('fields.any.name')}
            draft={quota.name}
            error={tell(quota, 'name')}
            onChange={name => change(index, { name })}
          />
          <AmountsField
            kind={FIXED}
            label={t('simulate.guaranteed')}
            rows={quota.guaranteed}
            error={tell(quota, 'guaranteed')}
            onChange={guaranteed => change(index, { guaranteed })}
          />
          <AmountsField
            kind={LIMIT}
            label={t('simulate.maximum')}
            help={t('simulate.maximumHelp')}
            rows={quota.maximum}
            error={tell(quota, 'maximum')}
            onChange={maximum => change(index, { maximum })}
          />
          <div data-wide>
            <Button
              kind="quiet"
              icon={<X size={16} aria-hidden />}
              onClick={() => onChange(quotas.filter((_, at) => at !== index))}
            >
              {t('simulate.removeQuota')}
            </Button>
          </div>
        </div>
      ))}
      <Button
        icon={<Plus size={16} aria-hidden />}
        onClick={() => onChange([...quotas, { ...NONE }])}
      >
        {t('simulate.addQuota')}
      </Button>
    </section>
  );
}

/** A name within a sentence, whose letters may run the other way. */
const isolate = (name: string): string => `\u2068${name}\u2069`;

interface TraceProps {
  trace: string;
  onChange(trace: string): void;
}

/** A trace, written or pasted here, or out of a file. */
export function TraceField({ trace, onChange }: TraceProps): JSX.Element {
  const { t } = useTranslation();
  const [file, setFile] = useState('');
  // What was wrong with a file goes with the one that is not used.
  const [given, setGiven] = useState(0);
  return (
    <div data-wide>
      {file ? (
        <p className="bai-panel-actions">
          <span>{t('simulate.fileName', { name: isolate(file) })}</span>
          <Button
            kind="quiet"
            icon={<X size={16} aria-hidden />}
            onClick={() => {
              setFile('');
              setGiven(given + 1);
              onChange('');
            }}
          >
            {t('simulate.fileClear')}
          </Button>
        </p>
      ) : (
        <TextArea
          label={t('simulate.trace')}
          optional={t('form.optional')}
          help={t('simulate.traceHelp')}
          value={trace}
          rows={3}
          code
          onChange={onChange}
        />
      )}
      <PickText
        key={given}
        accept=".jsonl,.json,.csv,.txt"
        onText={(text, name) => {
          onChange(text);
          setFile(name);
        }}
      />
    </div>
  );
}
