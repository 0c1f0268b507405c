import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';

/** What is in a file, scrolled by itself, with the keyboard as well. */
export function Scrolled({ children }: { children: ReactNode }): JSX.Element {
  const { t } = useTranslation();
  return (
    <div
      className="bai-scrolled"
      role="region"
      aria-label={t('files.content')}
      // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- else no key scrolls it
      tabIndex={0}
    >
      {children}
    </div>
  );
}
