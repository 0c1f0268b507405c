/** The fields of a new session. It lives inside somebody else's `<form>`. */
import type { DryRun, Mount } from '@backendai/api';
import {
  forwardRef,
  useEffect,
  useImperativeHandle,
  useRef,
  useState,
  type Dispatch,
  type SetStateAction
} from 'react';
import { createPortal } from 'react-dom';
import { useTranslation } from 'react-i18next';
import { showAmount } from '../amounts';
import { Field } from '../kit/Field';
import { slotTitle } from '../slots';
import { AmountField } from './AmountField';
import { EnvironmentChoice } from './EnvironmentChoice';
import { FolderChoice } from './FolderChoice';
import {
  chooseImage,
  choosePreset,
  applyChange,
  findErrors,
  formSlots,
  hasPreset,
  readAmounts,
  startState,
  toSpec,
  type FieldError,
  type GivenSpec,
  type LaunchSpec,
  type LaunchState
} from './form';
import { couldEverStart, judge } from './judgement';
import { Outlook } from './Outlook';
import { PlaceFields } from './PlaceFields';
import { PresetChoice } from './PresetChoice';
import { SessionLimits } from './SessionLimits';
import { supplyAt, type Supply } from './supply';
import { useDryRun, type AskFirst } from './useDryRun';
import type { FindFolders } from './useFolders';
import { Verdict } from './Verdict';

interface Props {
  supply: Supply;
  given: GivenSpec;
  language: string;
  onChange(spec: LaunchSpec): void;
  /** Asks what would become of a choice; without it the page judges by itself. */
  ask?: AskFirst;
  /** Finds folders to mount; without it none can be chosen. */
  find?: FindFolders;
  /** Where what would become of it is told; below the fields, if nothing is said. */
  verdictAt?: HTMLElement | null;
}

export interface LaunchFormHandle {
  /** Show every error and go to the list of them; tells whether there was none. */
  validate(): boolean;
}

export const LaunchForm = forwardRef<LaunchFormHandle, Props>(function LaunchForm(
  { supply, given, language, onChange, ask, find, verdictAt },
  handle
) {
  const [state, setState] = useState(() => startState(supply, given));
  const [left, setLeft] = useState<string[]>([]);
  const [submitted, setSubmitted] = useState(false);
  const summary = useRef<HTMLDivElement>(null);
  const offered = supplyAt(supply, state.place);
  const errors = findErrors(state, offered);
  const say = useErrorText(language);
  const judgement = judge(readAmounts(state), offered);
  const outcome = useDryRun(errors.length > 0 ? null : toSpec(state), ask);
  const automatic = useAutomatic(outcome);

  useEffect(() => onChange(toSpec(state)), [state, onChange]);
  useImperativeHandle(handle, () => ({
    validate: () => {
      setSubmitted(errors.length > 0);
      if (errors.length > 0) {
        // The summary is rendered only now: wait until it is there.
        requestAnimationFrame(() => summary.current?.focus());
      }
      return errors.length === 0;
    }
  }));
  const errorOf = (field: string): string | undefined => {
    const error = errors.find(each => each.field === field);
    return error && (submitted || left.includes(field)) ? say(error) : undefined;
  };
  const leave = useLeave(field => setLeft(old => [...new Set([...old, field])]));

  const told =
    outcome && (judgement.verdict !== 'unknown' || outcome.refused.length > 0) ? (
      <Outlook
        outcome={outcome}
        language={language}
        onApply={change => setState(old => applyChange(old, change, supply))}
      />
    ) : (
      <Verdict judgement={judgement} language={language} />
    );
  return (
    <div className="bai-launch">
      {submitted && errors.length > 0 ? (
        <ErrorSummary ref={summary} errors={errors} say={say} />
      ) : null}
      <EnvironmentChoice
        images={supply.images}
        value={state.image}
        language={language}
        error={errorOf('environment')}
        onChange={name => setState(old => chooseImage(old, name, supply))}
      />
      <PlaceFields {...{ supply, state, setState }} />
      <ResourceFields {...{ supply, state, setState, language, errorOf, leave }} />
      {find ? (
        <FolderChoice
          mounts={state.mounts}
          project={state.place.project || supply.project}
          find={find}
          automatic={automatic}
          onChange={change => setState(old => ({ ...old, mounts: change(old.mounts) }))}
        />
      ) : null}
      {verdictAt ? createPortal(told, verdictAt) : told}
      <MoreOptions {...{ state, setState, errorOf, leave }} />
    </div>
  );
});

/** What comes by itself, as it was told last: it need not blink while somebody types. */
function useAutomatic(outcome: DryRun | null): Mount[] {
  const [told, setTold] = useState<Mount[]>([]);
  useEffect(() => {
    if (outcome && outcome.refused.length === 0) {
      setTold(outcome.mounts.filter(each => each.automatic));
    }
  }, [outcome]);
  return told;
}

/**
 * Tell that a field was left, but never during a press: an error that appears then
 * would move the button away from under the pointer, and the press would be lost.
 */
function useLeave(tell: (field: string) => void): (field: string) => void {
  const pressed = useRef(false);
  useEffect(() => {
    const press = (): void => {
      pressed.current = true;
    };
    const release = (): void => {
      pressed.current = false;
    };
    const stop = new AbortController();
    const options = { capture: true, signal: stop.signal };
    document.addEventListener('pointerdown', press, options);
    document.addEventListener('pointerup', release, options);
    document.addEventListener('pointercancel', release, options);
    return () => stop.abort();
  }, []);
  return field => {
    if (pressed.current) {
      const later = (): void => void setTimeout(() => tell(field));
      document.addEventListener('pointerup', later, { once: true });
    } else {
      tell(field);
    }
  };
}

interface PartProps {
  state: LaunchState;
  setState: Dispatch<SetStateAction<LaunchState>>;
  errorOf(field: string): string | undefined;
  leave(field: string): void;
}

function ResourceFields({
  supply,
  language,
  errorOf,
  leave,
  ...rest
}: PartProps & { supply: Supply; language: string }): JSX.Element {
  const { t } = useTranslation();
  const { state, setState } = rest;
  const offered = supplyAt(supply, state.place);
  return (
    <fieldset className="bai-group">
      <legend>{t('launch.resources')}</legend>
      <PresetChoice
        presets={(supply.presets ?? []).filter(preset =>
          couldEverStart(preset.resource_slots, supply)
        )}
        isChosen={preset => hasPreset(state, preset)}
        language={language}
        onChoose={preset => setState(old => choosePreset(old, preset, supply))}
      />
      <div className="bai-amounts">
        {formSlots(supply).map(slot => (
          <AmountField
            key={slot}
            slot={slot}
            supply={offered}
            language={language}
            error={errorOf(slot)}
            onBlur={() => leave(slot)}
            {...rest}
          />
        ))}
      </div>
      <SessionLimits supply={offered} language={language} />
    </fieldset>
  );
}

function MoreOptions({ state, setState, errorOf, leave }: PartProps): JSX.Element {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const wrong = Boolean(errorOf('name') ?? errorOf('shmem'));
  useEffect(() => {
    if (wrong) {
      setOpen(true); // an error must be in sight, but mending it closes nothing
    }
  }, [wrong]);
  return (
    <details
      className="bai-more"
      open={open}
      onToggle={event => setOpen(event.currentTarget.open)}
    >
      <summary>{t('launch.more')}</summary>
      <div className="bai-amounts">
        <Field
          id="backendai-name"
          label={t('launch.name')}
          optional={t('launch.optional')}
          help={t('launch.nameHelp')}
          error={errorOf('name')}
          value={state.name}
          onBlur={() => leave('name')}
          onChange={name => setState(old => ({ ...old, name }))}
        />
        <Field
          id="backendai-shmem"
          label={t('launch.shmem')}
          optional={t('launch.optional')}
          help={t('launch.shmemHelp')}
          error={errorOf('shmem')}
          unit="GiB"
          decimal
          value={state.shmem}
          onBlur={() => leave('shmem')}
          onChange={shmem => setState(old => ({ ...old, shmem }))}
        />
      </div>
    </details>
  );
}

interface SummaryProps {
  errors: FieldError[];
  say(error: FieldError): string;
}

const ErrorSummary = forwardRef<HTMLDivElement, SummaryProps>(function ErrorSummary(
  { errors, say },
  ref
) {
  const { t } = useTranslation();
  const titles: Record<string, string> = {
    environment: t('launch.environment'),
    name: t('launch.name'),
    shmem: t('launch.shmem')
  };
  return (
    <div ref={ref} tabIndex={-1} role="alert" className="bai-summary">
      <p>{t('launch.summary')}</p>
      <ul>
        {errors.map(error => (
          <li key={error.field}>
            <a href={`#backendai-${error.field}`} onClick={event => goTo(event, error.field)}>
              {titles[error.field] ?? slotTitle(error.field, t)}
            </a>
            {': '}
            {say(error)}
          </li>
        ))}
      </ul>
    </div>
  );
});

function goTo(event: { preventDefault(): void }, field: string): void {
  event.preventDefault();
  document.getElementById(`backendai-${field}`)?.focus();
}

function useErrorText(language: string): (error: FieldError) => string {
  const { t } = useTranslation();
  return ({ text, slot, amount }) => {
    const shown = slot && amount !== undefined ? showAmount(slot, amount, language) : '';
    return t(text, { least: shown, most: shown });
  };
}
