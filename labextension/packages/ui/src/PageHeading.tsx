import { useEffect, useRef, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from './host';

interface Props {
  title: string;
  beside?: ReactNode;
  children?: ReactNode;
}

let first = true;

/** The page's only h1. It takes the focus when one page replaces another. */
export function PageHeading({ title, beside, children }: Props): JSX.Element {
  const { t } = useTranslation();
  const { kind, retitle } = useHost();
  const owns = kind === 'console';
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    retitle(owns ? `${title} · ${t('app.name')}` : title);
  }, [owns, retitle, title, t]);
  useEffect(() => {
    // On the first page the browser's own start of the document is the right place.
    if (owns && !first) {
      heading.current?.focus();
    }
    first = false;
  }, [owns]);
  return (
    <div className="bai-heading">
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {beside}
      <div className="bai-heading-actions">{children}</div>
    </div>
  );
}
