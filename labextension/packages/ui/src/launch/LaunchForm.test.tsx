// @vitest-environment happy-dom
import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { createRef } from 'react';
import { I18nextProvider } from 'react-i18next';
import { afterEach, describe, expect, test } from 'vitest';
import { createTranslator } from '../i18n';
import { makeGroup, makePreset, makeResources } from '../testing';
import type { LaunchSpec } from './form';
import { LaunchForm, type LaunchFormHandle } from './LaunchForm';
import type { Supply } from './supply';
import type { AskFirst } from './useDryRun';

afterEach(cleanup);

async function show(supply: Supply = makeResources(), ask?: AskFirst) {
  const specs: LaunchSpec[] = [];
  const handle = createRef<LaunchFormHandle>();
  const remember = (spec: LaunchSpec): void => void specs.push(spec);
  const { container } = render(
    <I18nextProvider i18n={await createTranslator('en', ['launch'])}>
      <LaunchForm
        ref={handle}
        supply={supply}
        given={{}}
        language="en"
        onChange={remember}
        ask={ask}
      />
    </I18nextProvider>
  );
  const validate = (): boolean => {
    let valid = false;
    act(() => {
      valid = handle.current?.validate() ?? false;
    });
    return valid;
  };
  return { specs, validate, container };
}

describe('the launch form on a page', () => {
  test('tells its choice from the start and after every change', async () => {
    const { specs } = await show();
    fireEvent.click(screen.getByRole('radio', { name: /Torch/ }));
    fireEvent.click(screen.getByRole('button', { name: 'More NVIDIA GPU' }));

    expect(specs.at(0)?.image).toBe('python');
    expect(specs.at(-1)).toMatchObject({ image: 'torch', slots: { 'cuda.device': '2' } });
  });

  test('says what would happen as amounts are typed', async () => {
    await show();
    expect(screen.getByText('Starts now')).toBeTruthy();

    fireEvent.change(screen.getByLabelText('Memory'), { target: { value: '40' } });
    expect(screen.getByText('Memory asks 40 GiB, 32 GiB free')).toBeTruthy();

    fireEvent.change(screen.getByLabelText('Memory'), { target: { value: '400' } });
    expect(screen.getByText('No node could ever run this')).toBeTruthy();
  });

  test('asks what would become of it, and takes over what would start at once', async () => {
    const asked: LaunchSpec[] = [];
    const ask: AskFirst = spec => {
      asked.push(spec);
      const waits = spec.slots.cpu !== '2';
      return Promise.resolve({
        refused: [],
        starts_now: !waits,
        nodes: waits ? [] : ['gpu-03'],
        slots: spec.slots,
        mounts: [],
        project: 'default',
        resource_group: 'default',
        why: waits
          ? {
              session: '',
              status: 'PENDING',
              position: 3,
              waiting: 7,
              reasons: ['cpu: asks 4, 2 free on gpu-03'],
              changes: [
                {
                  text: 'with 2 cpu instead of 4',
                  yours: true,
                  resource_group: null,
                  slots: { ...spec.slots, cpu: '2' }
                }
              ],
              at: null,
              starts_at: null,
              at_the_earliest: false,
              hangs_on: '1 session does not say when it ends'
            }
          : null
      });
    };
    const { specs } = await show(makeResources(), ask);
    fireEvent.change(screen.getByLabelText('CPU'), { target: { value: '4' } });
    expect(await screen.findByText('Will wait, number 3 of 7')).toBeTruthy();
    expect(screen.getByText('CPU: asks 4, 2 free on gpu-03')).toBeTruthy();
    expect(asked.map(spec => spec.slots.cpu)).toEqual(['4']); // once it stood still

    fireEvent.click(screen.getByRole('button', { name: 'Apply' }));
    expect(specs.at(-1)?.slots.cpu).toBe('2');
    expect(await screen.findByText('A place for this session is free on gpu-03.')).toBeTruthy();
  });

  test('says everything it would be refused for', async () => {
    await show(makeResources(), () =>
      Promise.resolve({
        refused: [
          { code: 'conflict', text: "you already have a session named 'x'" },
          { code: 'invalid-request', text: 'priority: 101 is more than 100' }
        ],
        starts_now: false,
        nodes: [],
        slots: {},
        mounts: [],
        project: null,
        resource_group: null,
        why: null
      })
    );
    expect(await screen.findByText('Would be refused')).toBeTruthy();
    expect(screen.getByText('priority: 101 is more than 100')).toBeTruthy();
  });

  test('goes on judging by itself while nobody answers', async () => {
    await show(makeResources(), () => Promise.reject(new Error('away')));
    expect(screen.getByText('Starts now')).toBeTruthy();
  });

  test('says under a field what is free, and what one node can give', async () => {
    const { container } = await show();
    const help = (slot: string): string | null | undefined =>
      container.querySelector(`[id="backendai-${slot}-help"]`)?.textContent;

    expect(help('cpu')).toBe('6 of 16 free now, at most 4 on one node; the largest node has 8');
    expect(help('cuda.device')).toBe('1 of 2 free now; the largest node has 1');
  });

  test('says it shortly where there is one node only', async () => {
    const room = [{ slot: 'cpu', total: '2', free: '2', largest: '2', most: '2' }];
    await show(makeResources({ nodes: 1, room }));

    expect(screen.getByText('2 of 2 free now')).toBeTruthy();
  });

  test('an error waits until its field is left', async () => {
    await show();
    const field = screen.getByLabelText('CPU');
    fireEvent.change(field, { target: { value: 'x' } });
    expect(field.getAttribute('aria-invalid')).toBeNull();

    fireEvent.blur(field);
    expect(field.getAttribute('aria-invalid')).toBe('true');
  });

  test('an unfinished form leads to its errors', async () => {
    const { validate } = await show();
    expect(validate()).toBe(true);

    fireEvent.change(screen.getByLabelText('CPU'), { target: { value: 'x' } });
    expect(validate()).toBe(false);
    const summary = screen.getByRole('alert');
    await waitFor(() => expect(document.activeElement).toBe(summary));

    fireEvent.click(screen.getByRole('link', { name: 'CPU' }));
    expect(document.activeElement).toBe(screen.getByLabelText('CPU'));
  });

  test('many environments become a list to choose from', async () => {
    const [image] = makeResources().images;
    const images = Array.from({ length: 9 }, (_, n) => ({ ...image, name: `py${n}` }));
    const { specs } = await show(
      makeResources({ images: images as ReturnType<typeof makeResources>['images'] })
    );
    fireEvent.change(screen.getByLabelText('Environment'), { target: { value: 'py3' } });

    expect(specs.at(-1)?.image).toBe('py3');
  });

  test('asks for a project and a group only where there are several', async () => {
    await show();
    expect(screen.queryByLabelText('Project')).toBeNull();
    expect(screen.queryByLabelText('Resource group')).toBeNull();
    cleanup();

    const { specs } = await show(
      makeResources({ projects: ['audio', 'vision'], resource_groups: ['cpus', 'gpus'] })
    );
    expect(specs.at(-1)).toMatchObject({ project: 'vision', resource_group: 'cpus' });

    fireEvent.change(screen.getByLabelText('Project'), { target: { value: 'audio' } });
    fireEvent.change(screen.getByLabelText('Resource group'), { target: { value: 'gpus' } });
    expect(specs.at(-1)).toMatchObject({ project: 'audio', resource_group: 'gpus' });
  });

  test('shows the room of the chosen group', async () => {
    const groups = [makeGroup('cpus', { cpu: '8' }, { cpu: '3' }), makeGroup('none', {})];
    await show({ ...makeResources({ resource_groups: ['cpus', 'none'] }), groups });
    expect(screen.getByText('3 of 8 free now')).toBeTruthy();

    const choice = screen.getByLabelText('Resource group');
    fireEvent.change(choice, { target: { value: 'none' } });
    expect(screen.getByText('No node is connected')).toBeTruthy();
  });

  test('does not count the limits of another project', async () => {
    const limit = { scope: 'project', name: 'vision', slot: 'cpu', used: '4', cap: '4' };
    await show(makeResources({ projects: ['audio', 'vision'], limits: [limit] }));
    expect(screen.getByText('Will wait')).toBeTruthy();

    const choice = screen.getByLabelText('Project');
    fireEvent.change(choice, { target: { value: 'audio' } });
    expect(screen.getByText('Starts now')).toBeTruthy();
    expect(choice.getAttribute('aria-describedby')).toBe('backendai-project-help');
    expect(screen.getByText(/checked when the session starts/)).toBeTruthy();
  });

  test('counts sessions in words, not as a resource', async () => {
    const limit = { scope: 'user', name: 'mina', slot: 'sessions', used: '3', cap: '3' };
    await show(makeResources({ limits: [limit] }));

    expect(screen.getByText('Sessions')).toBeTruthy();
    expect(screen.getByText('user mina: 3 of 3 in use')).toBeTruthy();
    expect(screen.queryByLabelText('Sessions')).toBeNull();
    expect(screen.getByText('No session is left in the limit of user mina')).toBeTruthy();
  });

  test('takes a preset at once if it could start now, and shows none that never can', async () => {
    const presets = [
      makePreset(),
      makePreset({ name: 'huge', allocatable: false, reason: 'no node has all of it' }),
      makePreset({ name: 'never', resource_slots: { 'rocm.device': '1' } })
    ];
    const { specs } = await show({ ...makeResources(), presets });
    const button = (name: RegExp) => screen.getByRole('button', { name });

    expect(screen.queryByRole('button', { name: /^never/ })).toBeNull();
    fireEvent.click(button(/^huge.*no node has all of it/));
    expect(specs.at(-1)?.slots.mem).toBe('2g');
    expect(button(/^huge/).getAttribute('aria-disabled')).toBe('true');

    fireEvent.click(button(/^small/));
    expect(specs.at(-1)?.slots).toMatchObject({ cpu: '1', mem: '4g' });
    expect(button(/^small/).getAttribute('aria-pressed')).toBe('true');
  });
});
