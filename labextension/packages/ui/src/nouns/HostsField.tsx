/** Storage hosts, and which of the eight permissions are given on each. */
import { useQuery } from '@tanstack/react-query';
import { useId } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Checkbox } from '../kit/Checkbox';
import { choicesQuery } from './choices';

export const PERMISSIONS = [
  'create-vfolder',
  'modify-vfolder',
  'delete-vfolder',
  'mount-in-session',
  'upload-file',
  'download-file',
  'invite-others',
  'set-user-specific-permission'
] as const;

interface Props {
  label: string;
  hosts: Record<string, string[]>;
  help?: string | undefined;
  onChange(hosts: Record<string, string[]>): void;
}

export function HostsField({ label, hosts, help, onChange }: Props): JSX.Element {
  const { t } = useTranslation();
  const id = useId();
  const known = useQuery(choicesQuery(useHost(), 'storage-hosts', '')).data?.items ?? [];
  const names = [...new Set([...known.map(host => host.name), ...Object.keys(hosts)])].sort();
  const set = (name: string, permissions: string[]): void => {
    const rest = Object.entries(hosts).filter(([each]) => each !== name);
    onChange(Object.fromEntries(permissions.length ? [...rest, [name, permissions]] : rest));
  };
  return (
    <fieldset className="bai-rows" aria-describedby={help ? `${id}-help` : undefined}>
      <legend>{label}</legend>
      <div className="bai-hosts">
        {names.map(name => (
          <HostChoice
            key={name}
            name={name}
            given={hosts[name] ?? []}
            onChange={permissions => set(name, permissions)}
          />
        ))}
      </div>
      {names.length ? null : <p className="bai-help">{t('form.noHosts')}</p>}
      {help ? (
        <span id={`${id}-help`} className="bai-help">
          {help}
        </span>
      ) : null}
    </fieldset>
  );
}

function HostChoice(props: {
  name: string;
  given: string[];
  onChange(permissions: string[]): void;
}): JSX.Element {
  const { t } = useTranslation();
  const { name, given, onChange } = props;
  const all = PERMISSIONS.every(each => given.includes(each));
  return (
    <fieldset className="bai-host">
      <legend className="bai-hidden">{name}</legend>
      <Checkbox
        label={<strong>{name}</strong>}
        checked={all}
        partly={!all && given.length > 0}
        onChange={checked => onChange(checked ? [...PERMISSIONS] : [])}
      />
      <div className="bai-host-permissions">
        {PERMISSIONS.map(each => (
          <Checkbox
            key={each}
            label={t(`permission.${each}`)}
            checked={given.includes(each)}
            onChange={checked =>
              onChange(checked ? [...given, each] : given.filter(other => other !== each))
            }
          />
        ))}
      </div>
    </fieldset>
  );
}
