import type { ImageChoice } from '@backendai/api';
import { CircleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { describeSlots } from '../slots';

interface Props {
  images: ImageChoice[];
  value: string;
  language: string;
  error: string | undefined;
  onChange(name: string): void;
}

/** More than these, and cards hide the rest of the form. */
const MOST_CARDS = 6;

export function EnvironmentChoice(props: Props): JSX.Element {
  const { t } = useTranslation();
  const { images, error } = props;
  return (
    <fieldset className="bai-group" data-invalid={error ? '' : undefined}>
      <legend>{t('launch.environment')}</legend>
      {images.length === 0 ? <p className="bai-help">{t('launch.noEnvironments')}</p> : null}
      {images.length > MOST_CARDS ? <Select {...props} /> : <Cards {...props} />}
      {error ? (
        <span className="bai-field-error">
          <CircleAlert size={14} aria-hidden /> {error}
        </span>
      ) : null}
    </fieldset>
  );
}

function Cards({ images, value, language, onChange }: Props): JSX.Element {
  const { t } = useTranslation();
  return (
    <div className="bai-choices">
      {images.map(({ name, title, minimum, installed }, index) => (
        <label key={name} className="bai-choice">
          <input
            type="radio"
            id={index === 0 ? 'backendai-environment' : undefined}
            name="backendai-environment"
            // A name makes radios a group; no form's field, for only `spec` is sent.
            form="backendai-none"
            value={name}
            checked={name === value}
            onChange={() => onChange(name)}
          />
          <span className="bai-choice-body">
            <span className="bai-choice-title">{title || name}</span>
            {title && title !== name ? <code>{name}</code> : null}
            <Least minimum={minimum} language={language} />
            {installed ? null : <span className="bai-help">{t('launch.notInstalled')}</span>}
          </span>
        </label>
      ))}
    </div>
  );
}

function Select({ images, value, language, onChange }: Props): JSX.Element {
  const { t } = useTranslation();
  const chosen = images.find(each => each.name === value);
  return (
    <div className="bai-field">
      <select
        id="backendai-environment"
        aria-label={t('launch.environment')}
        value={value}
        onChange={event => onChange(event.target.value)}
      >
        {images.map(({ name, title }) => (
          <option key={name} value={name}>
            {title && title !== name ? `${title} (${name})` : name}
          </option>
        ))}
      </select>
      {chosen ? <Least minimum={chosen.minimum} language={language} /> : null}
      {chosen && !chosen.installed ? (
        <span className="bai-help">{t('launch.notInstalled')}</span>
      ) : null}
    </div>
  );
}

function Least({
  minimum,
  language
}: {
  minimum: Record<string, string>;
  language: string;
}): JSX.Element | null {
  const { t } = useTranslation();
  const amounts = describeSlots(minimum, t, language);
  return amounts ? <span className="bai-help">{t('launch.needs', { amounts })}</span> : null;
}
