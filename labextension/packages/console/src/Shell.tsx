import { LANGUAGES, meQuery, useHost, type Language } from '@backendai/ui';
import { Drawer, IconButton, MenuButton, useColorMode } from '@backendai/ui/kit';
import { useQuery } from '@tanstack/react-query';
import {
  Activity,
  House,
  Languages,
  LogOut,
  Menu,
  Moon,
  Server,
  SquareTerminal,
  Sun,
  UserRound,
  type LucideIcon
} from 'lucide-react';
import { useEffect, useState, type MouseEvent, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { Link, useLocation } from 'wouter';
import { hub } from './host';

interface Props {
  onLanguage(language: Language): void;
  children: ReactNode;
}

/** What surrounds every page: the ways to the others, and who is logged in. */
export function Shell({ onLanguage, children }: Props): JSX.Element {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const [location] = useLocation();
  useEffect(() => setOpen(false), [location]);
  return (
    <div className="bai-root bai-shell">
      <a className="bai-skip" href="#main" onClick={skipToMain}>
        {t('app.skip')}
      </a>
      <header className="bai-header">
        <span className="bai-menu-button">
          <IconButton label={t('nav.open')} aria-expanded={open} onClick={() => setOpen(true)}>
            <Menu size={20} aria-hidden />
          </IconButton>
        </span>
        <Link href="/" className="bai-brand">
          <Activity size={22} aria-hidden />
          {t('app.name')}
        </Link>
        <HeaderActions onLanguage={onLanguage} />
      </header>
      <nav className="bai-side" aria-label={t('nav.label')}>
        <Ways />
      </nav>
      <Drawer open={open} label={t('nav.label')} onClose={() => setOpen(false)}>
        <nav className="bai-root" aria-label={t('nav.label')}>
          <Ways />
        </nav>
      </Drawer>
      <main id="main" tabIndex={-1} className="bai-main">
        {children}
      </main>
    </div>
  );
}

/* Not by the address: it belongs to the router. */
function skipToMain(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

function Ways(): JSX.Element {
  const { t } = useTranslation();
  const me = useQuery(meQuery(useHost())).data;
  return (
    <ul className="bai-ways">
      <Way href="/" Icon={SquareTerminal} text={t('nav.sessions')} also="/sessions" />
      {me?.roles.includes('superadmin') ? (
        <Way href="/nodes" Icon={Server} text={t('nav.nodes')} />
      ) : null}
      <li className="bai-ways-end">
        <a href={`${hub}home`}>
          <House size={18} aria-hidden />
          {t('nav.hub')}
        </a>
      </li>
    </ul>
  );
}

interface WayProps {
  href: string;
  Icon: LucideIcon;
  text: string;
  /** Pages below this one belong here too. */
  also?: string;
}

function Way({ href, Icon, text, also }: WayProps): JSX.Element {
  const [location] = useLocation();
  const here = location === href || (also !== undefined && location.startsWith(also));
  return (
    <li>
      <Link href={href} aria-current={here ? 'page' : undefined}>
        <Icon size={18} aria-hidden />
        {text}
      </Link>
    </li>
  );
}

function HeaderActions({ onLanguage }: { onLanguage: Props['onLanguage'] }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const { mode, setMode } = useColorMode();
  const dark = mode === 'dark';
  return (
    <div className="bai-header-actions">
      <MenuButton
        label={t('header.language')}
        icon={<Languages size={18} aria-hidden />}
        entries={Object.entries(LANGUAGES).map(([key, text]) => ({
          key,
          text,
          lang: key,
          selected: key === host.language,
          onSelect: () => onLanguage(key as Language)
        }))}
      />
      <IconButton
        label={t(dark ? 'header.light' : 'header.dark')}
        onClick={() => setMode(dark ? 'light' : 'dark')}
      >
        {dark ? <Sun size={18} aria-hidden /> : <Moon size={18} aria-hidden />}
      </IconButton>
      {me ? (
        <MenuButton
          label={t('header.account', { name: me.name })}
          icon={<UserRound size={18} aria-hidden />}
          text={me.name}
          entries={[
            {
              key: 'logout',
              text: t('header.logout'),
              icon: <LogOut size={16} aria-hidden />,
              href: `${hub}logout`
            }
          ]}
        />
      ) : null}
    </div>
  );
}
