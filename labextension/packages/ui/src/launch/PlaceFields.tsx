import type { Dispatch, SetStateAction } from 'react';
import { useTranslation } from 'react-i18next';
import { SelectField } from '../kit/SelectField';
import { choosePlace, type LaunchState } from './form';
import { isUnknownProject, type Place, type Supply } from './supply';

interface Props {
  supply: Supply;
  state: LaunchState;
  setState: Dispatch<SetStateAction<LaunchState>>;
}

/** Where the session belongs and runs, as far as there is a choice. */
export function PlaceFields({ supply, state, setState }: Props): JSX.Element | null {
  const { t } = useTranslation();
  const { project, group } = state.place;
  const choose = (place: Partial<Place>): void =>
    setState(old => choosePlace(old, place, supply));
  if (!project && !group) {
    return null;
  }
  return (
    <div className="bai-amounts">
      {project ? (
        <SelectField
          id="backendai-project"
          label={t('session.project')}
          value={project}
          options={supply.projects}
          help={isUnknownProject(supply, state.place) ? t('launch.projectLimits') : undefined}
          onChange={chosen => choose({ project: chosen })}
        />
      ) : null}
      {group ? (
        <SelectField
          id="backendai-resource-group"
          label={t('launch.resourceGroup')}
          value={group}
          options={supply.resource_groups}
          onChange={chosen => choose({ group: chosen })}
        />
      ) : null}
    </div>
  );
}
