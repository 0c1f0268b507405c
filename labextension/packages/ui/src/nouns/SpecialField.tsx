/** A number, an amount or a length of time, or one of the words that stand for one. */
import { useTranslation } from 'react-i18next';
import { parseAmount, showAmount } from '../amounts';
import { parseDuration, showDuration } from '../durations';
import { useHost } from '../host';
import { Field } from '../kit/Field';
import { asSpecial, isSpecial, specialsOf, type Draft, type Kind } from './kinds';

interface Props {
  kind: Kind;
  label: string;
  draft: Draft;
  help?: string | undefined;
  error?: string | undefined;
  optional?: string | undefined;
  onChange(draft: Draft): void;
}

export function SpecialField(props: Props): JSX.Element {
  const { kind, draft, onChange } = props;
  const { t } = useTranslation();
  const { language } = useHost();
  const specials = specialsOf(kind);
  const text = isSpecial(draft) ? '' : String(draft);
  const chosen = specials.find(each => asSpecial(each) === draft);
  return (
    <Field
      label={props.label}
      value={text}
      help={props.help}
      error={props.error}
      optional={props.optional}
      decimal={kind.type === 'number'}
      placeholder={chosen ? t(`special.${chosen.text}`) : placeholderOf(kind)}
      unit={meaning(kind, text, language)}
      onChange={onChange}
    >
      {specials.length ? (
        <span className="bai-chips">
          {specials.map(each => (
            <button
              key={each.text}
              type="button"
              className="bai-chip"
              aria-pressed={asSpecial(each) === draft}
              aria-label={`${props.label}: ${t(`special.${each.text}`)}`}
              onClick={() => onChange(asSpecial(each) === draft ? '' : asSpecial(each))}
            >
              {t(`special.${each.text}`)}
            </button>
          ))}
        </span>
      ) : null}
    </Field>
  );
}

function placeholderOf(kind: Kind): string | undefined {
  return { duration: '8h', size: '10g' }[kind.type as string];
}

/** What has been typed, as the reader says it. */
function meaning(kind: Kind, text: string, language: string): string | undefined {
  if (kind.type === 'duration') {
    const seconds = parseDuration(text);
    return seconds === null ? undefined : showDuration(seconds, language);
  }
  if (kind.type === 'size') {
    const bytes = parseAmount('mem', text);
    return bytes === null ? undefined : showAmount('mem', bytes, language);
  }
  return undefined;
}
