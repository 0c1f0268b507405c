/** One value of a noun as it is read: with its unit, and a way to what it names. */
import type { Me } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import type { TFunction } from 'i18next';
import { Check, Minus } from 'lucide-react';
import { Fragment, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { number, parseAmount, showAmount, sortSlots } from '../amounts';
import { showDuration } from '../durations';
import { useHost } from '../host';
import { PageLink } from '../PageLink';
import { meQuery } from '../queries';
import { slotTitle } from '../slots';
import { exactly } from '../times';
import { PERMISSIONS } from './HostsField';
import { specialsOf, type Kind, type Referred } from './kinds';
import { readsSite, readsTenants } from './roles';
import { valueWord } from './words';

/** Where their pages are, and who finds them. */
const PAGES: Partial<Record<Referred, [path: string, admits: (me: Me) => boolean]>> = {
  domains: ['/admin/domains', readsTenants],
  projects: ['/admin/projects', readsTenants],
  users: ['/admin/users', readsTenants],
  registries: ['/admin/registries', readsSite],
  'resource-groups': ['/admin/groups', readsSite],
  'user-policies': ['/admin/policies/user', readsSite],
  'keypair-policies': ['/admin/policies/keypair', readsSite],
  'project-policies': ['/admin/policies/project', readsSite]
};

interface Props {
  kind: Kind;
  /** The field's name: some values have words of their own. */
  field: string;
  value: unknown;
  /** The domain a project's name is of. */
  domain?: string | undefined;
}

export function Value({ kind, field, value, domain }: Props): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const meaning = specialsOf(kind).find(each => each.value === value);
  if (meaning) {
    return <>{t(`special.${meaning.text}`)}</>;
  }
  if (kind.type === 'flag') {
    return <Flag on={value === true} />;
  }
  if (isNothing(value)) {
    return <span className="bai-none">{nothing(kind, t)}</span>;
  }
  switch (kind.type) {
    case 'reference':
      return <Reference noun={kind.noun} name={String(value)} domain={domain} />;
    case 'words':
      return <Words noun={kind.noun} names={value as string[]} />;
    case 'slots':
      return <Amounts amounts={value as Record<string, string>} />;
    case 'hosts':
      return <Hosts hosts={value as Record<string, string[]>} />;
    case 'page':
      return <pre className="bai-code">{String(value)}</pre>;
    case 'choices':
      return <>{(value as string[]).map(each => valueWord(t, field, each)).join(', ')}</>;
    default:
      return <>{plain(kind, field, value, t, language)}</>;
  }
}

/** The same in plain text, as files and comparisons have it. */
export function plain(
  kind: Kind,
  field: string,
  value: unknown,
  t: TFunction,
  language: string
): string {
  const meaning = specialsOf(kind).find(each => each.value === value);
  if (meaning) {
    return t(`special.${meaning.text}`);
  }
  if (kind.type === 'flag') {
    return t(value === true ? 'form.yes' : 'form.no');
  }
  if (isNothing(value)) {
    return '–';
  }
  switch (kind.type) {
    case 'number':
      return number(Number(value), language, 3);
    case 'duration':
      return showDuration(Number(value), language);
    case 'size':
      return showAmount('mem', parseAmount('mem', String(value)) ?? 0, language);
    case 'moment':
      return exactly(String(value), language);
    case 'choice':
      return valueWord(t, field, String(value));
    case 'slots':
    case 'weights':
      return Object.entries(value as object)
        .map(([slot, amount]) => `${slot} ${amountText(slot, String(amount), language)}`)
        .join(', ');
    case 'hosts':
      return Object.entries(value as Record<string, string[]>)
        .map(([host, given]) => `${host}: ${given.length}`)
        .join(', ');
    default:
      return Array.isArray(value) ? value.join(', ') : String(value as string);
  }
}

function isNothing(value: unknown): boolean {
  return (
    value === null ||
    value === undefined ||
    value === '' ||
    (typeof value === 'object' && Object.keys(value).length === 0)
  );
}

const nothing = (kind: Kind, t: TFunction): string =>
  kind.type === 'slots' && kind.limits ? t('special.unlimited') : '–';

export function Flag({ on }: { on: boolean }): JSX.Element {
  const { t } = useTranslation();
  return (
    <span className="bai-flag" data-on={on ? '' : undefined}>
      {on ? <Check size={14} aria-hidden /> : <Minus size={14} aria-hidden />}
      {t(on ? 'form.yes' : 'form.no')}
    </span>
  );
}

export function amountText(slot: string, amount: string, language: string): string {
  if (amount === 'inf') {
    return '∞';
  }
  const parsed = parseAmount(slot, amount);
  return parsed === null ? amount : showAmount(slot, parsed, language);
}

/** An amount with its name, unless its unit says it: `2 CPU`, `16 GiB`. */
function amountOf(slot: string, amount: string, t: TFunction, language: string): string {
  const shown = amountText(slot, amount, language);
  return slot === 'mem' && / /.test(shown) ? shown : `${shown} ${slotTitle(slot, t)}`;
}

export function Amounts({ amounts }: { amounts: Record<string, string> }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  return (
    <span className="bai-slots">
      {sortSlots(Object.keys(amounts)).map(slot => (
        <span key={slot}>{amountOf(slot, amounts[slot] ?? '', t, language)}</span>
      ))}
    </span>
  );
}

export function Reference(props: {
  noun: Referred;
  name: string;
  domain?: string | undefined;
}): JSX.Element {
  const { noun, name, domain } = props;
  const me = useQuery(meQuery(useHost())).data;
  const [path, admits] = PAGES[noun] ?? [];
  const which = noun === 'projects' && domain ? `${domain}:${name}` : name;
  return path && me && admits?.(me) ? (
    <PageLink to={`${path}/${encodeURIComponent(which)}`}>{name}</PageLink>
  ) : (
    <>{name}</>
  );
}

function Words({ noun, names }: { noun: Referred | undefined; names: string[] }): JSX.Element {
  return (
    <>
      {names.map((name, index): ReactNode => (
        <Fragment key={name}>
          {index > 0 ? ', ' : ''}
          {noun ? <Reference noun={noun} name={name} /> : name}
        </Fragment>
      ))}
    </>
  );
}

function Hosts({ hosts }: { hosts: Record<string, string[]> }): JSX.Element {
  const { t } = useTranslation();
  return (
    <ul className="bai-plain-list">
      {Object.entries(hosts).map(([host, given]) => (
        <li key={host}>
          <strong>{host}</strong>{' '}
          <span className="bai-help-inline">
            {given.length === PERMISSIONS.length
              ? t('form.everything')
              : given.map(each => t(`permission.${each}`, { defaultValue: each })).join(', ')}
          </span>
        </li>
      ))}
    </ul>
  );
}
