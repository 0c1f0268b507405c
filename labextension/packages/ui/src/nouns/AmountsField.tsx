/** Amounts of resources: one line for each, more by a button. */
import { useQuery } from '@tanstack/react-query';
import { CircleAlert, Plus, X } from 'lucide-react';
import { useId, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { isBytes, sortSlots } from '../amounts';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import { slotTitle } from '../slots';
import { choicesQuery } from './choices';
import type { Kind } from './kinds';

interface Props {
  kind: Kind & { type: 'slots' | 'weights' };
  label: string;
  rows: Record<string, string>;
  help?: string | undefined;
  error?: string | undefined;
  onChange(rows: Record<string, string>): void;
}

const USUAL = ['cpu', 'mem'];

export function AmountsField({ kind, label, rows, help, error, onChange }: Props): JSX.Element {
  const { t } = useTranslation();
  const id = useId();
  const known = useQuery(choicesQuery(useHost(), 'slot-types', '')).data?.items ?? [];
  const all = known.length ? known.map(slot => slot.name) : USUAL;
  const left = sortSlots(all.filter(slot => !(slot in rows)));
  const set = (slot: string, amount: string): void => onChange({ ...rows, [slot]: amount });
  const drop = (slot: string): void =>
    onChange(Object.fromEntries(Object.entries(rows).filter(([name]) => name !== slot)));
  return (
    <fieldset className="bai-rows" aria-describedby={help ? `${id}-help` : undefined}>
      <legend>{label}</legend>
      {sortSlots(Object.keys(rows)).map(slot => (
        <AmountRow
          key={slot}
          slot={slot}
          amount={rows[slot] ?? ''}
          unlimited={kind.type === 'slots' && kind.limits}
          onChange={amount => set(slot, amount)}
          onDrop={() => drop(slot)}
        />
      ))}
      {Object.keys(rows).length === 0 ? (
        <p className="bai-help">
          {t(kind.type === 'weights' ? 'form.noWeights' : 'form.noAmounts')}
        </p>
      ) : null}
      {left.length ? <AddRow slots={left} onAdd={slot => set(slot, '')} label={label} /> : null}
      {error ? (
        <span className="bai-field-error">
          <CircleAlert size={14} aria-hidden /> {error}
        </span>
      ) : null}
      {help ? (
        <span id={`${id}-help`} className="bai-help">
          {help}
        </span>
      ) : null}
    </fieldset>
  );
}

function AmountRow(props: {
  slot: string;
  amount: string;
  unlimited: boolean;
  onChange(amount: string): void;
  onDrop(): void;
}): JSX.Element {
  const { t } = useTranslation();
  const { slot, amount, unlimited, onChange, onDrop } = props;
  const id = useId();
  const title = slotTitle(slot, t);
  const free = amount === 'inf';
  return (
    <span className="bai-amount-row">
      <label htmlFor={id}>
        {title}
        {title === slot ? null : <code>{slot}</code>}
      </label>
      <span className="bai-input">
        <input
          id={id}
          type="text"
          inputMode="decimal"
          autoComplete="off"
          value={free ? '' : amount}
          placeholder={free ? '∞' : isBytes(slot) ? '16g' : '4'}
          onChange={event => onChange(event.target.value)}
        />
      </span>
      {unlimited ? (
        <button
          type="button"
          className="bai-chip"
          aria-pressed={free}
          aria-label={`${title}: ${t('special.unlimited')}`}
          title={t('special.unlimited')}
          onClick={() => onChange(free ? '' : 'inf')}
        >
          ∞
        </button>
      ) : null}
      <button
        type="button"
        className="bai-square"
        aria-label={t('form.removeRow', { name: title })}
        onClick={onDrop}
      >
        <X size={16} aria-hidden />
      </button>
    </span>
  );
}

function AddRow(props: {
  slots: string[];
  label: string;
  onAdd(slot: string): void;
}): JSX.Element {
  const { t } = useTranslation();
  const { slots, label, onAdd } = props;
  const [chosen, setChosen] = useState('');
  const slot = slots.includes(chosen) ? chosen : (slots[0] ?? '');
  return (
    <span className="bai-add-row">
      <select
        aria-label={`${label}: ${t('form.resource')}`}
        value={slot}
        onChange={event => setChosen(event.target.value)}
      >
        {slots.map(each => (
          <option key={each} value={each}>
            {slotTitle(each, t)} ({each})
          </option>
        ))}
      </select>
      <Button size="small" icon={<Plus size={14} aria-hidden />} onClick={() => onAdd(slot)}>
        {t('form.addRow')}
      </Button>
    </span>
  );
}
