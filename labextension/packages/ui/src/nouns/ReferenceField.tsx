/** Another noun, by name: a list where there are few, looked for where there are many. */
import { useQuery } from '@tanstack/react-query';
import { useDeferredValue } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Field } from '../kit/Field';
import { SelectField } from '../kit/SelectField';
import { choicesQuery } from './choices';
import type { AnyRow } from './noun';
import type { Referred } from './kinds';

interface Props {
  noun: Referred;
  label: string;
  draft: string;
  /** What stands for nothing, where that may be. */
  none?: string | undefined;
  /** The domain whose projects are meant. */
  domain?: string;
  help?: string | undefined;
  error?: string | undefined;
  optional?: string | undefined;
  onChange(draft: string): void;
}

export function ReferenceField(props: Props): JSX.Element {
  const { noun, label, draft, none, domain, help, error, optional, onChange } = props;
  const { t } = useTranslation();
  const host = useHost();
  const filters: Record<string, string> = noun === 'projects' && domain ? { domain } : {};
  const first = useQuery(choicesQuery(host, noun, '', filters)).data;
  const many = Boolean(first?.next);
  const search = useDeferredValue(many ? draft : '');
  const found = useQuery(choicesQuery(host, noun, search, filters)).data ?? first;
  const options = (found?.items ?? []).map(row => ({
    value: referenceTo(noun, row),
    text: textOf(noun, row, domain)
  }));
  const common = { label, help, error, optional };
  if (many) {
    const suggestions = options.map(option => option.value);
    return <Field {...common} value={draft} suggestions={suggestions} onChange={onChange} />;
  }
  const known = options.some(option => option.value === draft) || draft === '';
  return (
    <SelectField
      {...common}
      value={draft}
      options={[
        ...(none === undefined && draft ? [] : [{ value: '', text: none ?? t('form.choose') }]),
        ...(known ? [] : [{ value: draft, text: draft }]),
        ...options
      ]}
      onChange={onChange}
    />
  );
}

/** How the API is told which one is meant: names of projects are unique in a domain. */
export function referenceTo(noun: Referred, row: AnyRow): string {
  return noun === 'projects' ? `${String(row.domain)}:${row.name}` : row.name;
}

function textOf(noun: Referred, row: AnyRow, domain: string | undefined): string {
  return noun === 'projects' && domain === undefined ? referenceTo(noun, row) : row.name;
}
