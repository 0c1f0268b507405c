/** States of nouns, said beside their names. */
import {
  Ban,
  CircleCheck,
  CircleOff,
  Crown,
  EyeOff,
  Lock,
  ShieldCheck,
  Star
} from 'lucide-react';
import type { ComponentProps } from 'react';
import { useTranslation } from 'react-i18next';
import { Badge } from '../kit/Badge';
import type { Shown } from './noun';

type Tone = ComponentProps<typeof Badge>['tone'];

export function Word(props: { tone: Tone; Icon: typeof Ban; text: string }): JSX.Element {
  const { t } = useTranslation();
  const { tone, Icon, text } = props;
  return (
    <Badge tone={tone} icon={<Icon size={14} />}>
      {t(`badges.${text}`)}
    </Badge>
  );
}

export const Inactive = (): JSX.Element => (
  <Word tone="neutral" Icon={CircleOff} text="inactive" />
);
export const Default = (): JSX.Element => <Word tone="progress" Icon={Star} text="default" />;

export function UserBadges({ row }: { row: Shown<'users'> }): JSX.Element | null {
  if (row.status === 'active') {
    return null;
  }
  return row.status === 'inactive' ? (
    <Inactive />
  ) : (
    <Word tone="warning" Icon={Ban} text={row.status ?? 'inactive'} />
  );
}

export function RoleBadge({ row }: { row: Shown<'users'> }): JSX.Element {
  const { t } = useTranslation();
  const { role = 'user' } = row;
  if (role === 'user') {
    return <>{t('badges.user')}</>;
  }
  return role === 'superadmin' ? (
    <Word tone="warning" Icon={Crown} text="superadmin" />
  ) : (
    <Word tone="progress" Icon={ShieldCheck} text={role} />
  );
}

export function ActiveBadges({
  row
}: {
  row: { is_active?: boolean; is_default?: boolean; is_public?: boolean };
}): JSX.Element {
  return (
    <>
      {row.is_active === false ? <Inactive /> : null}
      {row.is_default ? <Default /> : null}
      {row.is_public === false ? <Word tone="neutral" Icon={EyeOff} text="hidden" /> : null}
    </>
  );
}

export function KeypairBadges({ row }: { row: Shown<'keypairs'> }): JSX.Element {
  return (
    <>
      <ActiveBadges row={row} />
      {row.is_admin ? <Word tone="warning" Icon={Crown} text="adminKey" /> : null}
      {row.has_secret ? null : <Word tone="neutral" Icon={Lock} text="noSecret" />}
    </>
  );
}

export function ImageBadges({ row }: { row: Shown<'images'> }): JSX.Element {
  return (
    <>
      {row.status === 'ALIVE' ? null : <Word tone="neutral" Icon={CircleOff} text="gone" />}
      {row.installed ? (
        <Word tone="success" Icon={CircleCheck} text="installed" />
      ) : (
        <Word tone="neutral" Icon={CircleOff} text="notInstalled" />
      )}
    </>
  );
}
