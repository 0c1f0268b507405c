// @vitest-environment happy-dom
/** Descriptions say what the API says: its document is read here, where types end. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { valueAt, type Item } from './form';
import { fieldsOf, type AnyNoun } from './noun';
import { NOUN_TABLE } from './table';

interface Schema {
  $ref?: string;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  default?: unknown;
  enum?: unknown[];
}

interface Spec {
  paths: Record<string, Record<string, { parameters?: { name: string; in: string }[] }>>;
  components: { schemas: Record<string, Schema> };
}

const spec = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../api/openapi.json'), 'utf8')
) as Spec;
const NAMES: Record<string, string> = {
  users: 'User',
  keypairs: 'Keypair',
  projects: 'Project',
  domains: 'Domain',
  images: 'ImageRecord',
  presets: 'ResourcePreset',
  registries: 'Registry',
  'keypair-policies': 'KeypairPolicy',
  'user-policies': 'UserPolicy',
  'project-policies': 'ProjectPolicy',
  'resource-groups': 'ResourceGroup',
  reservations: 'Reservation',
  'slot-types': 'ResourceSlotType'
};

/** What has no field: settings of packages, and what pages for it will come with. */
const ELSEWHERE: Record<string, string[]> = {
  'resource-groups': ['driver', 'driver_opts', 'default_deployment_options'],
  registries: ['extra'],
  'slot-types': ['display_icon']
};

const of = (name: string): Record<string, Schema> =>
  spec.components.schemas[name]?.properties ?? {};
const top = (name: string): string => name.split('.')[0] ?? name;

/** What something of this schema is, if nothing is said. */
function defaultAt(shown: string, path: string): unknown {
  const [first = '', ...rest] = path.split('.');
  const schema = of(shown)[first];
  return rest.length
    ? valueAt((schema?.default ?? {}) as Item, rest.join('.'))
    : schema?.default;
}

const nouns = await Promise.all(
  Object.entries(NOUN_TABLE).map(async ([path, load]): Promise<[string, AnyNoun]> => [
    path,
    await load()
  ])
);

describe.each(nouns)('the noun at %s', (path, noun) => {
  const shown = NAMES[noun.name] ?? '';
  const creates = of(`${shown}Request`);
  const changes = of(`${shown}Change`);
  const fields = fieldsOf(noun).filter(field => !field.virtual);

  test('is where the table says', () => {
    expect(noun.path).toBe(path);
    expect(spec.paths[`/api/${noun.name}`]).toBeDefined();
  });

  test('has a field for everything that the API takes', () => {
    const taken = new Set([...Object.keys(creates), ...Object.keys(changes)]);
    const said = new Set([
      ...fields.map(field => top(field.name)),
      ...(ELSEWHERE[noun.name] ?? [])
    ]);

    expect([...said].sort()).toEqual([...taken].sort());
  });

  test('fixes what the API does not change, and nothing else', () => {
    const fixed = fields.filter(field => field.once).map(field => field.name);

    expect(fixed).toEqual(
      fields.map(field => field.name).filter(name => !(top(name) in changes))
    );
  });

  test('begins as the API would make it', () => {
    for (const { name, initial } of noun.creates === false ? [] : fields) {
      expect(initial ?? null, name).toEqual(defaultAt(shown, name) ?? null);
    }
  });

  test('narrows and orders by what the API knows', () => {
    const query = spec.paths[`/api/${noun.name}`]?.get?.parameters ?? [];
    const known = query.filter(each => each.in === 'query').map(each => each.name);
    const asked = [
      ...(noun.filters ?? []).map(filter => filter.key),
      ...(noun.tabs ?? []).flatMap(tab => Object.keys(tab.filter))
    ];

    expect(asked.filter(name => !known.includes(name))).toEqual([]);
  });

  test('offers verbs that change what can be changed', () => {
    const changed = (noun.verbs ?? []).flatMap(verb => Object.keys(verb.change?.fields ?? {}));

    expect(changed.filter(name => !(name in changes))).toEqual([]);
  });

  test('has words for everything', async () => {
    const words = (
      (await import('../i18n/en/admin.json')) as unknown as { default: Record<string, Item> }
    ).default;
    const own = (words.nouns?.[noun.name] ?? {}) as Item;
    const labels = fields.filter(
      ({ name }) =>
        valueAt(words, `fields.${noun.name}.${name}`) === undefined &&
        valueAt(words, `fields.any.${name}`) === undefined
    );
    const missing = [
      ...['title', 'about', 'search', 'emptyTitle', 'emptyText', 'purgeText'].filter(
        key => typeof own[key] !== 'string'
      ),
      ...(noun.panels ?? []).filter(({ key }) => !valueAt(own, `panels.${key}`)),
      ...(noun.tabs ?? []).filter(({ key }) => !valueAt(own, `tabs.${key}`)),
      ...noun.sections.filter(({ key }) => !valueAt(words, `sections.${key}`)),
      ...(noun.verbs ?? []).filter(({ key }) => !valueAt(words, `deeds.${key}.text`)),
      ...noun.columns.filter(
        ({ key }) =>
          !valueAt(words, `fields.${noun.name}.${key}`) && !valueAt(words, `fields.any.${key}`)
      )
    ];

    expect(labels.map(field => field.name)).toEqual([]);
    expect(missing).toEqual([]);
  });
});
