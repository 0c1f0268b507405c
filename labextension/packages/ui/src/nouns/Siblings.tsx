import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { PageLink } from '../PageLink';
import { meQuery } from '../queries';
import { familyOf } from './families';

/** The pages that belong to this one, as a row of links that looks like tabs. */
export function Siblings({ path }: { path: string }): JSX.Element | null {
  const { t } = useTranslation();
  const me = useQuery(meQuery(useHost())).data;
  const family = familyOf(path).filter(sibling => me && sibling.admits(me));
  if (family.length < 2) {
    return null;
  }
  return (
    <nav className="bai-siblings" aria-label={t('ways.label')}>
      {family.map(sibling => (
        <PageLink key={sibling.path} to={sibling.path} current={sibling.path === path}>
          {t(`ways.${sibling.text}`)}
        </PageLink>
      ))}
    </nav>
  );
}
