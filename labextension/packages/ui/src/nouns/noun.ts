/**
 * What a noun is to the pages: one small description of its columns, filters, fields
 * and verbs. List, form and detail are made from it.
 *
 * Whatever is said about it is found in the catalogue `admin` by its name:
 * `nouns.<name>.…` for itself, `fields.<name>.<field>` for a field of its own and
 * `fields.<field>` for one that several have; `help.…` beside these says more.
 */
import type { Me, Schemas } from '@backendai/api';
import type { LucideIcon } from 'lucide-react';
import type { ComponentType, ReactNode } from 'react';
import type { Host } from '../host';
import type { Kind } from './kinds';

/** What the API shows, takes to make one, and takes to change one. */
export interface Shapes {
  users: [Schemas['User'], Schemas['UserRequest'], Schemas['UserChange']];
  keypairs: [Schemas['Keypair'], Schemas['KeypairRequest'], Schemas['KeypairChange']];
  projects: [Schemas['Project'], Schemas['ProjectRequest'], Schemas['ProjectChange']];
  domains: [Schemas['Domain'], Schemas['DomainRequest'], Schemas['DomainChange']];
  images: [Schemas['ImageRecord'], Schemas['ImageRecordChange'], Schemas['ImageRecordChange']];
  presets: [
    Schemas['ResourcePreset'],
    Schemas['ResourcePresetRequest'],
    Schemas['ResourcePresetChange']
  ];
  registries: [Schemas['Registry'], Schemas['RegistryRequest'], Schemas['RegistryChange']];
  'keypair-policies': [
    Schemas['KeypairPolicy'],
    Schemas['KeypairPolicyRequest'],
    Schemas['KeypairPolicyChange']
  ];
  'user-policies': [
    Schemas['UserPolicy'],
    Schemas['UserPolicyRequest'],
    Schemas['UserPolicyChange']
  ];
  'project-policies': [
    Schemas['ProjectPolicy'],
    Schemas['ProjectPolicyRequest'],
    Schemas['ProjectPolicyChange']
  ];
  'resource-groups': [
    Schemas['ResourceGroup'],
    Schemas['ResourceGroupRequest'],
    Schemas['ResourceGroupChange']
  ];
  reservations: [
    Schemas['Reservation'],
    Schemas['ReservationRequest'],
    Schemas['ReservationChange']
  ];
  'slot-types': [
    Schemas['ResourceSlotType'],
    Schemas['ResourceSlotTypeRequest'],
    Schemas['ResourceSlotTypeChange']
  ];
}

export type NounName = keyof Shapes;
export type Shown<N extends NounName = NounName> = Shapes[N][0];
type Given<N extends NounName> = keyof Shapes[N][1] | keyof Shapes[N][2];

/** A field of a request, or a part of one that is a document: `scheduler_opts.config`. */
type FieldName<N extends NounName> = (Given<N> & string) | `${Given<N> & string}.${string}`;

export interface NounField<N extends NounName = NounName> {
  name: N extends NounName ? FieldName<N> : string;
  kind: Kind;
  /** What a new one gets that does not say, as the API has it. */
  initial?: unknown;
  /** Fixed once it is made. */
  once?: boolean;
  /** Has to be given to make one. */
  required?: boolean;
  /** Who may set it, of those who may change the noun; anybody, if it is absent. */
  by?: 'superadmin';
  /** Not a field of the API: what makes new ones reads it. */
  virtual?: boolean;
  /** Never shown by the service: an empty field leaves it as it is. */
  secret?: boolean;
  /** Only where this holds of what is in the form. */
  when?(values: Readonly<Record<string, unknown>>): boolean;
  /** What it is edited as, if not as the service shows it. */
  value?(item: Record<string, unknown>): unknown;
}

/** Fields that belong together, under a heading `sections.<key>`. */
export interface Section<N extends NounName = NounName> {
  key: string;
  fields: NounField<N>[];
}

export interface NounColumn<Row> {
  /** A field of what is shown, which is also its text's name. */
  key: string & keyof Row;
  sort?: boolean;
  align?: 'end';
  /** Hidden until somebody chooses it. */
  hidden?: boolean;
  /** Said otherwise than by the kind of its field. */
  cell?: ComponentType<{ row: Row }>;
}

export interface NounFilter {
  key: string;
  /** Its values: words of the API, flags, or names of another noun. */
  of: readonly string[] | 'flag' | { noun: NounName };
}

/** One thing that can be done, to one or to several. */
export interface NounVerb<Row> {
  key: string;
  Icon: LucideIcon;
  /** Who may do it, of those who may change the noun; anybody, if it is absent. */
  by?: 'superadmin';
  /** Whether it can be done to this one; what cannot is not offered. */
  when?(row: Row, me: Me): boolean;
  /** The change that it makes, and the one that takes it back. */
  change?: { fields: Record<string, unknown>; undo: Record<string, unknown> };
  /** What is lost cannot be brought back: the name has to be typed. */
  purges?: boolean;
  /** Anything else. What it returns stays on the page until it is closed. */
  Dialog?: ComponentType<{ row: Row; onClose(): void }>;
  danger?: boolean;
}

export interface NounPanel<Row> {
  key: string;
  /** Absent: everybody who sees the page. */
  admits?(me: Me, row: Row): boolean;
  Panel: ComponentType<{ row: Row }>;
}

export interface NounOf<N extends NounName> {
  /** As the API's paths have it, which is also its texts' name. */
  name: N;
  /** Where its pages are. */
  path: string;
  Icon: LucideIcon;
  admits(me: Me): boolean;
  /** Who may make and change them, if not everybody who sees them. */
  writes?(me: Me): boolean;
  /** Which ones they may change; all that they see, if it is absent. */
  changes?(row: Shown<N>, me: Me): boolean;
  /** False where they come into being by themselves. */
  creates?: boolean | ((me: Me) => boolean);
  columns: NounColumn<Shown<N>>[];
  filters?: NounFilter[];
  /** The usual order, if not by name. */
  order?: string;
  /** Tabs above the list: a filter that is always set. The first is the usual one. */
  tabs?: { key: string; filter: Record<string, string> }[];
  sections: Section<N>[];
  verbs?: NounVerb<Shown<N>>[];
  /** The fields that can be changed of several at once. */
  together?: readonly string[];
  panels?: NounPanel<Shown<N>>[];
  /** What is said beside the name: a state, for instance. */
  Badges?: ComponentType<{ row: Shown<N> }>;
  /** Further ways to make them, beside the button that opens the form. */
  More?: ComponentType;
  /** What has to be seen once after one is made, such as a secret. */
  Made?: ComponentType<{ row: Shown<N>; onClose(): void }>;
  /** How one is called where its name is not enough. */
  title?(row: Shown<N>): string;
  /** Says the request otherwise than field by field. */
  finish?(body: Record<string, unknown>): Record<string, unknown>;
  /** Makes one otherwise than by the common route. */
  create?(host: Host, body: Record<string, unknown>): Promise<Shown<N>>;
}

/** A description whose kind of noun does not matter to who reads it. */
export type AnyNoun = NounOf<NounName>;
export type AnyRow = {
  id: string;
  name: string;
  revision?: number;
} & Record<string, unknown>;

export interface Extra {
  children?: ReactNode;
}

/** Type checks a description, and forgets its noun: what reads it takes any. */
export function describe<N extends NounName>(noun: NounOf<N>): AnyNoun {
  return noun as unknown as AnyNoun;
}

export const fieldsOf = (noun: AnyNoun): NounField[] =>
  noun.sections.flatMap(section => section.fields);

/** Whether somebody may change them at all; which ones says {@link mayChange}. */
export const mayWrite = (noun: AnyNoun, me: Me | undefined): boolean =>
  me !== undefined && (noun.writes ?? noun.admits)(me);

export const mayChange = (noun: AnyNoun, row: AnyRow, me: Me | undefined): boolean =>
  me !== undefined && mayWrite(noun, me) && (noun.changes?.(row as never, me) ?? true);

export const mayCreate = (noun: AnyNoun, me: Me | undefined): boolean =>
  typeof noun.creates === 'function' ? Boolean(me && noun.creates(me)) : noun.creates !== false;
