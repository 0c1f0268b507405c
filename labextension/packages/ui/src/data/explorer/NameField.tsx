import { Check, X } from 'lucide-react';
import { useEffect, useId, useRef, useState, type FormEvent } from 'react';
import { useTranslation } from 'react-i18next';
import { IconButton } from '../../kit/Button';
import { faultOf } from '../paths';

interface Props {
  label: string;
  initial: string;
  onDone(name: string): Promise<void>;
  onCancel(): void;
}

/** A name, changed where it stands: Enter takes it, Escape leaves it as it was. */
export function NameField({ label, initial, onDone, onCancel }: Props): JSX.Element {
  const { t } = useTranslation();
  const id = useId();
  const [name, setName] = useState(initial);
  const [busy, setBusy] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    input.current?.focus();
    // What it ends with is what it is: people mean to keep that.
    const end = initial.lastIndexOf('.');
    input.current?.setSelectionRange(0, end > 0 ? end : initial.length);
  }, [initial]);
  const fault = faultOf(name);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!fault && !busy) {
      setBusy(true);
      void onDone(name).finally(() => setBusy(false));
    }
  };
  return (
    <form className="bai-name-field" onSubmit={submit}>
      <span className="bai-input">
        <input
          ref={input}
          type="text"
          aria-label={label}
          aria-invalid={fault ? true : undefined}
          aria-describedby={fault ? id : undefined}
          autoComplete="off"
          spellCheck={false}
          value={name}
          readOnly={busy}
          onChange={event => setName(event.target.value)}
          onKeyDown={event => {
            if (event.key === 'Escape') {
              event.stopPropagation();
              onCancel();
            }
          }}
        />
      </span>
      <IconButton label={t('files.take')} submits>
        <Check size={16} aria-hidden />
      </IconButton>
      <IconButton label={t('files.leave')} onClick={onCancel}>
        <X size={16} aria-hidden />
      </IconButton>
      {fault && name !== '' ? (
        <span id={id} className="bai-field-error" role="alert">
          {t(`files.fault.${fault}`)}
        </span>
      ) : null}
    </form>
  );
}
