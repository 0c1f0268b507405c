/** Every noun that has pages. A new one is a description in `of/`, its words, and a line. */
import type { AnyNoun } from './noun';

type Load = () => Promise<AnyNoun>;

const NOUNS = {
  '/admin/users': async () => (await import('./of/users')).users,
  '/admin/keypairs': async () => (await import('./of/keypairs')).keypairs,
  '/admin/projects': async () => (await import('./of/projects')).projects,
  '/admin/domains': async () => (await import('./of/domains')).domains,
  '/admin/images': async () => (await import('./of/images')).images,
  '/admin/presets': async () => (await import('./of/presets')).presets,
  '/admin/registries': async () => (await import('./of/registries')).registries,
  '/admin/policies/keypair': async () => (await import('./of/policies')).keypairPolicies,
  '/admin/policies/user': async () => (await import('./of/policies')).userPolicies,
  '/admin/policies/project': async () => (await import('./of/policies')).projectPolicies,
  '/admin/groups': async () => (await import('./of/groups')).groups,
  '/admin/reservations': async () => (await import('./of/reservations')).reservations,
  '/admin/slot-types': async () => (await import('./of/slotTypes')).slotTypes
} satisfies Record<string, Load>;

export type NounPath = keyof typeof NOUNS;
export const NOUN_TABLE: Readonly<Record<NounPath, Load>> = NOUNS;
