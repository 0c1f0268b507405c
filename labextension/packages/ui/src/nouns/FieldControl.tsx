/** The control of one field, by its kind. */
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Field } from '../kit/Field';
import { SelectField } from '../kit/SelectField';
import { Switch } from '../kit/Switch';
import { TextArea } from '../kit/TextArea';
import { meQuery } from '../queries';
import { AmountsField } from './AmountsField';
import type { Drafts } from './form';
import { HostsField } from './HostsField';
import type { Draft } from './kinds';
import type { NounField } from './noun';
import { ReferenceField } from './ReferenceField';
import { SpecialField } from './SpecialField';
import { Ticked, WordsField } from './WordsField';
import { valueWord, type NounWords } from './words';

interface Props {
  field: NounField;
  drafts: Drafts;
  words: NounWords;
  error?: string | undefined;
  onChange(draft: Draft): void;
}

export function FieldControl({ field, drafts, words, error, onChange }: Props): JSX.Element {
  const { t } = useTranslation();
  const { kind, name } = field;
  const draft = drafts[name] ?? '';
  const common = {
    label: words.label(name),
    help: words.help(name),
    error,
    optional: field.required ? t('form.required') : undefined
  };
  switch (kind.type) {
    case 'flag':
      return (
        <div className="bai-field">
          <Switch label={common.label} checked={draft === true} onChange={onChange} />
          {common.help ? <span className="bai-help">{common.help}</span> : null}
        </div>
      );
    case 'page':
      return (
        <TextArea
          {...common}
          value={String(draft)}
          rows={kind.code ? 10 : 3}
          code={kind.code ?? false}
          onChange={onChange}
        />
      );
    case 'number':
    case 'duration':
    case 'size':
      return <SpecialField {...common} kind={kind} draft={draft} onChange={onChange} />;
    case 'moment':
      return (
        <Field {...common} type="datetime-local" value={String(draft)} onChange={onChange} />
      );
    case 'slots':
    case 'weights':
      return (
        <AmountsField
          {...common}
          kind={kind}
          rows={draft as Record<string, string>}
          onChange={onChange}
        />
      );
    case 'hosts':
      return (
        <HostsField {...common} hosts={draft as Record<string, string[]>} onChange={onChange} />
      );
    case 'choices':
      return (
        <Ticked
          {...common}
          names={kind.of}
          chosen={draft as string[]}
          text={value => valueWord(t, name, value)}
          onChange={onChange}
        />
      );
    case 'words':
    case 'numbers':
      return (
        <WordsField
          {...common}
          noun={kind.type === 'words' ? kind.noun : undefined}
          draft={String(draft)}
          onChange={onChange}
        />
      );
    case 'reference':
      return (
        <ReferenceField
          {...common}
          noun={kind.noun}
          draft={String(draft)}
          none={kind.optional ? t('form.none') : undefined}
          {...(typeof drafts.domain === 'string' ? { domain: drafts.domain } : {})}
          onChange={onChange}
        />
      );
    case 'choice':
      return <Choice {...common} field={field} draft={String(draft)} onChange={onChange} />;
    default:
      return (
        <Field
          {...common}
          type={field.secret ? 'password' : 'text'}
          autoComplete={field.secret ? 'new-password' : 'off'}
          value={String(draft)}
          onChange={onChange}
        />
      );
  }
}

function Choice(props: {
  field: NounField;
  label: string;
  draft: string;
  help: string | undefined;
  error: string | undefined;
  onChange(draft: Draft): void;
}): JSX.Element {
  const { t } = useTranslation();
  const { field, draft, ...rest } = props;
  const me = useQuery(meQuery(useHost())).data;
  const kind = field.kind as NounField['kind'] & { type: 'choice' };
  if (kind.open) {
    return <Field {...rest} value={draft} suggestions={kind.of} />;
  }
  const open = me && kind.admits ? kind.of.filter(value => kind.admits?.(value, me)) : kind.of;
  const values = open.includes(draft) || draft === '' ? open : [draft, ...open];
  return (
    <SelectField
      {...rest}
      value={draft}
      options={values.map(value => ({ value, text: valueWord(t, field.name, value) }))}
    />
  );
}
