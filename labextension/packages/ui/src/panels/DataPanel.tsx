/** The sidebar's view of one's folders. */
import { useTranslation } from 'react-i18next';
import { FolderPanel } from '../data/folders/FolderPanel';
import { PageLink } from '../PageLink';

export function DataPanel(): JSX.Element {
  const { t } = useTranslation();
  return (
    <section aria-labelledby="bai-panel-data">
      <header className="bai-panel-head">
        <h2 id="bai-panel-data">{t('data.title')}</h2>
      </header>
      <FolderPanel />
      <p className="bai-panel-foot">
        <PageLink to="/data">{t('data.all')}</PageLink>
      </p>
    </section>
  );
}
