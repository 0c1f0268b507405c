import { LANGUAGES, meQuery, PAGES, useHost, type Language, type Page } from '@backendai/ui';
import { Drawer, IconButton, MenuButton, useColorMode, type Notices } from '@backendai/ui/kit';
import { useQuery } from '@tanstack/react-query';
import { Activity, House, Languages, LogOut, Menu, Moon, Sun, UserRound } from 'lucide-react';
import { useEffect, useId, useState, type MouseEvent, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { Link, useLocation } from 'wouter';
import { useKeptFocus } from './focus';
import { hub } from './host';
import { NoticeBell } from './NoticeBell';

interface Props {
  onLanguage(language: Language): void;
  notices: Notices;
  children: ReactNode;
}

/** What surrounds every page: the ways to the others, and who is logged in. */
export function Shell({ onLanguage, notices, children }: Props): JSX.Element {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const [location] = useLocation();
  useEffect(() => setOpen(false), [location]);
  useKeptFocus();
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
          <span className="bai-brand-name">{t('app.name')}</span>
        </Link>
        <HeaderActions onLanguage={onLanguage} notices={notices} />
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
  const ways = PAGES.filter(page => page.way && (!page.admits || (me && page.admits(me))));
  const title = useId();
  const site = ways.filter(page => page.way?.group === 'site');
  return (
    <>
      <ul className="bai-ways">
        {ways.map(page =>
          page.way?.group === 'work' ? <Way key={page.path} {...page} /> : null
        )}
      </ul>
      {site.length ? (
        <>
          <h2 className="bai-ways-title" id={title}>
            {t('nav.site')}
          </h2>
          <ul className="bai-ways" aria-labelledby={title}>
            {site.map(page => (
              <Way key={page.path} {...page} />
            ))}
          </ul>
        </>
      ) : null}
      <ul className="bai-ways bai-ways-end">
        <li>
          <a href={`${hub}home`}>
            <House size={18} aria-hidden />
            {t('nav.hub')}
          </a>
        </li>
      </ul>
    </>
  );
}

/** Pages below this one belong here too. */
function Way({ path, way }: Page): JSX.Element | null {
  const { t } = useTranslation();
  const [location] = useLocation();
  if (!way) {
    return null;
  }
  const { Icon, text, Beside, also = [] } = way;
  const here = [path, ...also].some(
    each => location === each || (each !== '/' && location.startsWith(`${each}/`))
  );
  return (
    <li>
      <Link href={path} aria-current={here ? 'page' : undefined}>
        <Icon size={18} aria-hidden />
        {t(text)}
        {Beside ? <Beside /> : null}
      </Link>
    </li>
  );
}

function HeaderActions({ onLanguage, notices }: Omit<Props, 'children'>): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const { mode, setMode } = useColorMode();
  const dark = mode === 'dark';
  return (
    <div className="bai-header-actions">
      <NoticeBell notices={notices} />
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
