/** The resource group a page is about, kept in its address. */
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../address';
import { useHost } from '../host';
import { SelectField } from '../kit/SelectField';
import { Skeleton } from '../kit/States';
import { LoadError } from '../LoadError';
import { choicesQuery } from '../nouns/choices';

export interface ChosenGroup {
  name: string;
  /** The choice, for the page's toolbar; nothing while there is only one. */
  choice: JSX.Element | null;
  /** What stands in the place of the page's contents as long as there is no group. */
  instead: JSX.Element | null;
}

export function useGroup(): ChosenGroup {
  const { t } = useTranslation();
  const [address, setAddress] = useAddress();
  const { data, error, refetch } = useQuery(choicesQuery(useHost(), 'resource-groups', ''));
  const groups = data?.items ?? [];
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
  const nothing = data ? (
    <p className="bai-nothing">{t('nouns.resource-groups.emptyTitle')}</p>
  ) : (
    <Skeleton rows={6} label={t('state.loading')} />
  );
  const instead = error ? <LoadError error={error} onRetry={() => void refetch()} /> : nothing;
  return { name, choice, instead: name ? null : instead };
}
