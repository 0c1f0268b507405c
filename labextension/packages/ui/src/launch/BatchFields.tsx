/** The fields that only a batch job has. */
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Field } from '../kit/Field';
import { TextArea } from '../kit/TextArea';
import { findBatchErrors, type BatchState } from './batch';

interface Props {
  state: BatchState;
  /** Whether what was left empty is said to be wrong, too. */
  strict: boolean;
  onChange(change: Partial<BatchState>): void;
}

export function CommandField({ state, strict, onChange }: Props): JSX.Element {
  const { t } = useTranslation();
  const wrong = findBatchErrors(state).command;
  return (
    <TextArea
      label={t('launchPage.command')}
      help={t('launchPage.commandHelp')}
      placeholder="python train.py --epochs 10"
      code
      rows={3}
      value={state.command}
      error={strict && wrong ? t(wrong) : undefined}
      onChange={command => onChange({ command })}
    />
  );
}

export function BatchFields({ state, onChange }: Props): JSX.Element {
  const { t } = useTranslation();
  const errors = findBatchErrors(state);
  const some = Object.entries(state).some(([key, text]) => key !== 'command' && text !== '');
  const [open, setOpen] = useState(some);
  const say = (field: keyof BatchState): string | undefined => {
    const error = errors[field];
    return error && state[field] ? t(error) : undefined;
  };
  return (
    <details
      className="bai-more"
      open={open}
      onToggle={event => setOpen(event.currentTarget.open)}
    >
      <summary>{t('launchPage.advanced')}</summary>
      <div className="bai-launch-advanced">
        <TextArea
          label={t('launchPage.environ')}
          optional={t('launch.optional')}
          help={t('launchPage.environHelp')}
          placeholder={'WANDB_MODE=offline\nSEED=7'}
          code
          rows={3}
          value={state.environ}
          error={say('environ')}
          onChange={environ => onChange({ environ })}
        />
        <div className="bai-amounts">
          <Field
            label={t('launchPage.after')}
            optional={t('launch.optional')}
            help={t('launchPage.afterHelp')}
            value={state.after}
            onChange={after => onChange({ after })}
          />
          <Field
            type="datetime-local"
            label={t('launchPage.starts')}
            optional={t('launch.optional')}
            help={t('launchPage.startsHelp')}
            value={state.starts}
            onChange={starts => onChange({ starts })}
          />
          <Field
            label={t('launchPage.timeout')}
            optional={t('launch.optional')}
            help={t('launchPage.timeoutHelp')}
            placeholder="2h 30m"
            value={state.timeout}
            error={say('timeout')}
            onChange={timeout => onChange({ timeout })}
          />
          <Field
            label={t('launchPage.attempts')}
            optional={t('launch.optional')}
            help={t('launchPage.attemptsHelp')}
            placeholder="1"
            decimal
            value={state.attempts}
            error={say('attempts')}
            onChange={attempts => onChange({ attempts })}
          />
          <Field
            label={t('launchPage.cluster')}
            optional={t('launch.optional')}
            help={t('launchPage.clusterHelp')}
            placeholder="1"
            decimal
            value={state.cluster}
            error={say('cluster')}
            onChange={cluster => onChange({ cluster })}
          />
          <Field
            label={t('launchPage.tag')}
            optional={t('launch.optional')}
            help={t('launchPage.tagHelp')}
            value={state.tag}
            onChange={tag => onChange({ tag })}
          />
        </div>
      </div>
    </details>
  );
}
