/** What a page is, whichever host shows it. */
import type { Me } from '@backendai/api';
import type { LucideIcon } from 'lucide-react';
import type { ComponentType } from 'react';
import type { Area } from '../i18n';

export interface PageProps {
  /** What the pattern's parts are in the address. */
  params: Record<string, string | undefined>;
}

/** Where the way to a page stands: with everybody's work, or with running the site. */
export type Group = 'work' | 'site';

export interface Page {
  /** As `wouter` reads it: `/sessions/:id`. */
  path: string;
  /** What is said on it, besides what every page says. */
  areas: readonly Area[];
  load(): Promise<{ default: ComponentType<PageProps> }>;
  /** Who finds it; everybody, if it is absent. The service refuses on its own. */
  admits?(me: Me): boolean;
  /** The way to it from every page; `text` is a key of the catalogue `base`. */
  way?: {
    text: string;
    Icon: LucideIcon;
    group: Group;
    /** Where further pages begin that this is the way to. */
    also?: readonly string[];
    /** Shown beside it, such as how many things wait there. */
    Beside?: ComponentType;
  };
}

export const isSuperadmin = (me: Me): boolean => me.roles.includes('superadmin');

/** Looks at everything, and has nothing: no sessions, no folders. */
export const isMonitor = (me: Me): boolean => me.roles.includes('monitor');

/** Runs the site, or one domain of it. */
export const administers = (me: Me): boolean =>
  isSuperadmin(me) || me.roles.includes('domain-admin');
