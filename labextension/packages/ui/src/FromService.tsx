/** A sentence of the service, in the reader's language as far as the phrase book goes. */
import { Fragment, useMemo } from 'react';
import { useSaying } from './wording';

interface Props {
  text: string;
  className?: string;
  /** Shown in full on hover, where it may be cut. */
  whole?: boolean;
}

/** What nobody has translated is marked as English, so that it is also read as such. */
export function FromService({ text, className, whole = false }: Props): JSX.Element | null {
  const say = useSaying();
  const pieces = useMemo(() => (text ? say(text) : []), [say, text]);
  if (!text) {
    return null;
  }
  const isEnglish = pieces.every(piece => piece.english);
  return (
    <span
      className={className}
      lang={isEnglish ? 'en' : undefined}
      title={whole ? pieces.map(piece => piece.text).join('') : undefined}
    >
      {pieces.map((piece, at) =>
        piece.english && !isEnglish ? (
          <span key={at} lang="en">
            {piece.text}
          </span>
        ) : (
          <Fragment key={at}>{piece.text}</Fragment>
        )
      )}
    </span>
  );
}
