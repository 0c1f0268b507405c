/** A text out of a file, instead of one that is typed. */
import { CircleAlert, FileUp } from 'lucide-react';
import { useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from '../kit/Button';

/** As the service takes it. */
const MOST = 3 << 20;

interface Props {
  /** Which files are offered first: `.csv,.txt`. */
  accept: string;
  onText(text: string, name: string): void;
}

export function PickText({ accept, onText }: Props): JSX.Element {
  const { t } = useTranslation();
  const input = useRef<HTMLInputElement>(null);
  const [wrong, setWrong] = useState('');
  const read = async (chosen: File): Promise<void> => {
    setWrong('');
    if (chosen.size > MOST) {
      setWrong(t('form.fileTooBig'));
      return;
    }
    try {
      const decoder = new TextDecoder('utf-8', { fatal: true });
      onText(decoder.decode(await chosen.arrayBuffer()), chosen.name);
    } catch {
      setWrong(t('form.fileNoText'));
    }
  };
  return (
    <>
      <input
        ref={input}
        type="file"
        hidden
        accept={accept}
        aria-label={t('form.file')}
        onChange={event => {
          const [chosen] = event.target.files ?? [];
          if (chosen) {
            void read(chosen);
          }
          event.target.value = '';
        }}
      />
      <Button icon={<FileUp size={16} aria-hidden />} onClick={() => input.current?.click()}>
        {t('form.file')}
      </Button>
      {wrong ? (
        <p className="bai-field-error" role="alert">
          <CircleAlert size={14} aria-hidden /> {wrong}
        </p>
      ) : null}
    </>
  );
}
