import { Minus, Plus } from 'lucide-react';
import type { Dispatch, SetStateAction } from 'react';
import { useTranslation } from 'react-i18next';
import { isBytes, showAmount } from '../amounts';
import { Field } from '../kit/Field';
import { slotTitle } from '../slots';
import { readTyped, stepAmount, typeAmount, type LaunchState } from './form';
import { readRoom, type Room } from './judgement';
import { LimitLines } from './LimitLines';
import type { Supply } from './supply';

interface Props {
  slot: string;
  supply: Supply;
  state: LaunchState;
  setState: Dispatch<SetStateAction<LaunchState>>;
  language: string;
  error: string | undefined;
  onBlur(): void;
}

/** One resource: how much is asked, and where that stands in what there is. */
export function AmountField(props: Props): JSX.Element {
  const { slot, supply, state, setState, language, error, onBlur } = props;
  const { t } = useTranslation();
  const room = readRoom(supply.room.find(each => each.slot === slot));
  const typed = state.typed[slot] ?? '';
  const title = slotTitle(slot, t);
  const step = (by: 1 | -1): void => setState(old => stepAmount(old, slot, by));
  return (
    <div className="bai-amount">
      <Field
        id={`backendai-${slot}`}
        label={title}
        value={typed}
        decimal
        unit={isBytes(slot) ? 'GiB' : slot === 'cpu' ? t('slot.cores') : undefined}
        error={error}
        onBlur={onBlur}
        onChange={text => setState(old => typeAmount(old, slot, text))}
        help={<RoomText slot={slot} room={room} supply={supply} language={language} />}
      >
        <RoomBar room={room} asked={readTyped(slot, typed) ?? 0} />
      </Field>
      <span className="bai-steps">
        <button
          type="button"
          aria-label={t('launch.decrease', { slot: title })}
          onClick={() => step(-1)}
        >
          <Minus size={16} aria-hidden />
        </button>
        <button
          type="button"
          aria-label={t('launch.increase', { slot: title })}
          onClick={() => step(1)}
        >
          <Plus size={16} aria-hidden />
        </button>
      </span>
    </div>
  );
}

/* Decoration: the help text below says the same in words. */
function RoomBar({ room, asked }: { room: Room; asked: number }): JSX.Element | null {
  const { total, free } = room;
  if (total === 0) {
    return null;
  }
  const percent = (amount: number): string => `${Math.min(100, (amount / total) * 100)}%`;
  return (
    <span className="bai-room" aria-hidden data-over={asked > free ? '' : undefined}>
      <span className="bai-room-used" style={{ width: percent(total - free) }} />
      <span
        className="bai-room-asked"
        style={{
          left: percent(Math.min(total - free, Math.max(0, total - asked))),
          width: percent(asked)
        }}
      />
    </span>
  );
}

/** The words for a room, leaving out what follows from the rest. */
function roomWords({ free, largest, most }: Room, { nodes, isBound }: Supply): string {
  if (nodes === 1 || isBound) {
    return 'launch.freeNowOne';
  }
  const scattered = largest < free && largest < most;
  return scattered ? 'launch.freeNowScattered' : 'launch.freeNow';
}

interface RoomTextProps {
  slot: string;
  room: Room;
  supply: Supply;
  language: string;
}

function RoomText({ slot, room, supply, language }: RoomTextProps): JSX.Element {
  const { t } = useTranslation();
  const show = (amount: number): string => showAmount(slot, amount, language);
  const { free, total, largest, most } = room;
  return (
    <>
      {total === 0
        ? null
        : t(roomWords(room, supply), {
            free: show(free),
            total: show(total),
            largest: show(largest),
            most: show(most)
          })}
      <LimitLines slot={slot} supply={supply} language={language} />
    </>
  );
}
