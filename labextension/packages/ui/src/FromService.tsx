/** A sentence of the service, marked as the English that it is. */
import { useTranslation } from 'react-i18next';
import { isSentence, wordSentence } from './wording';

interface Props {
  text: string;
  className?: string;
  /** Shown in full on hover, where it may be cut. */
  whole?: boolean;
}

/** Readers in other languages hear it as English, and see what it names in their words. */
export function FromService({ text, className, whole = false }: Props): JSX.Element | null {
  const { t, i18n } = useTranslation();
  if (!text) {
    return null;
  }
  const said = wordSentence(text, t, i18n.language);
  return (
    <span
      className={className}
      lang={isSentence(text) ? 'en' : undefined}
      title={whole ? said : undefined}
    >
      {said}
    </span>
  );
}
