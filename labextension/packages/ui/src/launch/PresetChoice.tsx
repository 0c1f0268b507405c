import type { CheckedPreset } from '@backendai/api';
import { useTranslation } from 'react-i18next';
import { FromService } from '../FromService';
import { describeSlots } from '../slots';

interface Props {
  presets: CheckedPreset[];
  isChosen(preset: CheckedPreset): boolean;
  language: string;
  onChoose(preset: CheckedPreset): void;
}

/** Amounts that an administrator has put together, to take at once. */
export function PresetChoice(props: Props): JSX.Element | null {
  const { presets, isChosen, language, onChoose } = props;
  const { t } = useTranslation();
  if (presets.length === 0) {
    return null;
  }
  return (
    <div className="bai-choices" role="group" aria-label={t('launch.presets')}>
      {presets.map(preset => (
        <button
          key={`${preset.resource_group ?? ''}/${preset.name}`}
          type="button"
          className="bai-choice bai-preset"
          aria-pressed={isChosen(preset)}
          // Still reached with the keyboard, so that its reason is heard.
          aria-disabled={!preset.allocatable}
          onClick={() => {
            if (preset.allocatable) {
              onChoose(preset);
            }
          }}
        >
          <span className="bai-choice-title">{preset.name}</span>
          <span className="bai-help">{describeSlots(preset.resource_slots, t, language)}</span>
          <FromService className="bai-help" text={preset.reason} />
        </button>
      ))}
    </div>
  );
}
