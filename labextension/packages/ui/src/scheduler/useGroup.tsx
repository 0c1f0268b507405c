/** The resource group a page is about, kept in its address. */
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../address';
import { useHost } from '../host';
import { SelectField } from '../kit/SelectField';
import { choicesQuery } from '../nouns/choices';

export interface ChosenGroup {
  name: string;
  /** The choice, for the page's toolbar; nothing while there is only one. */
  choice: JSX.Element | null;
}

export function useGroup(): ChosenGroup {
  const { t } = useTranslation();
  const [address, setAddress] = useAddress();
  const groups = useQuery(choicesQuery(useHost(), 'resource-groups', '')).data?.items ?? [];
  const usual = groups.find(group => group.is_default) ?? groups[0];
  const name = address.get('group') ?? usual?.name ?? '';
  const choose = (group: string): void =>
    setAddress(
      old => {
        const next = new URLSearchParams(old);
        ['after', 'domain', 'project', 'user'].forEach(key => next.delete(key));
        next.set('group', group);
        return next;
      },
      { replace: true }
    );
  const choice =
    groups.length > 1 ? (
      <div className="bai-group-choice">
        <SelectField
          label={t('fields.any.resource_group')}
          value={name}
          options={groups.map(group => group.name)}
          onChange={choose}
        />
      </div>
    ) : null;
  return { name, choice };
}
