/** What is permitted on a storage host, in words. */
import { useTranslation } from 'react-i18next';
import { PERMISSIONS } from '../../nouns/HostsField';

export function Permissions({ given }: { given: readonly string[] }): JSX.Element {
  const { t } = useTranslation();
  const isAll = PERMISSIONS.every(each => given.includes(each));
  return (
    <>
      {isAll
        ? t('form.everything')
        : given.map(each => t(`permission.${each}`, { defaultValue: each })).join(', ') || '–'}
    </>
  );
}
