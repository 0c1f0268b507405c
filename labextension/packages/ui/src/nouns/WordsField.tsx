/** Several names: ticked where what there is is known and few, else one on each line. */
import { useQuery } from '@tanstack/react-query';
import { useId } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Checkbox } from '../kit/Checkbox';
import { TextArea } from '../kit/TextArea';
import { choicesQuery } from './choices';
import { linesOf, type Referred } from './kinds';
import { referenceTo } from './ReferenceField';

interface Props {
  noun?: Referred | undefined;
  label: string;
  draft: string;
  help?: string | undefined;
  error?: string | undefined;
  optional?: string | undefined;
  onChange(draft: string): void;
}

const MOST_TICKED = 20;

export function WordsField(props: Props): JSX.Element {
  const { noun, label, draft, help, error, optional, onChange } = props;
  const { t } = useTranslation();
  const host = useHost();
  const { data } = useQuery({
    ...choicesQuery(host, noun ?? 'agents', ''),
    enabled: host.visible && noun !== undefined
  });
  const names = noun && data ? data.items.map(row => referenceTo(noun, row)) : null;
  const chosen = linesOf(draft);
  if (!noun || !names || names.length > MOST_TICKED || data?.next) {
    return (
      <TextArea
        label={label}
        value={draft}
        rows={3}
        help={[help, t('form.onePerLine')].filter(Boolean).join(' ')}
        error={error}
        optional={optional}
        onChange={onChange}
      />
    );
  }
  return (
    <Ticked
      label={label}
      names={[...new Set([...names, ...chosen])]}
      chosen={chosen}
      help={help}
      onChange={found => onChange(found.join('\n'))}
    />
  );
}

export function Ticked(props: {
  label: string;
  names: readonly string[];
  chosen: readonly string[];
  text?(name: string): string;
  help?: string | undefined;
  error?: string | undefined;
  onChange(chosen: string[]): void;
}): JSX.Element {
  const { t } = useTranslation();
  const { label, names, chosen, text = name => name, help, error, onChange } = props;
  const id = useId();
  return (
    <fieldset className="bai-rows" aria-describedby={help ? `${id}-help` : undefined}>
      <legend>{label}</legend>
      <div className="bai-ticked">
        {names.map(name => (
          <Checkbox
            key={name}
            label={text(name)}
            checked={chosen.includes(name)}
            onChange={checked =>
              onChange(checked ? [...chosen, name] : chosen.filter(each => each !== name))
            }
          />
        ))}
      </div>
      {names.length ? null : <p className="bai-help">{t('form.nothingToChoose')}</p>}
      {error ? <span className="bai-field-error">{error}</span> : null}
      {help ? (
        <span id={`${id}-help`} className="bai-help">
          {help}
        </span>
      ) : null}
    </fieldset>
  );
}
