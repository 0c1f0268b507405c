/** The state of a form that asks something of the service about a folder. */
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { describeFailure } from '../failures';
import { useWording } from '../../wording';
import { splitRefusal } from './useFolderVerbs';

export interface FolderForm<Values> {
  values: Values;
  set<Key extends keyof Values>(key: Key, value: Values[Key]): void;
  busy: boolean;
  errorOf(key: keyof Values & string): string | undefined;
  /** What went wrong, but with no field of the form. */
  error: string | undefined;
  submit(): void;
}

export function useFolderForm<Values extends object>(
  initial: Values,
  send: (values: Values) => Promise<unknown>,
  onDone: () => void
): FolderForm<Values> {
  const { t } = useTranslation();
  const say = useWording();
  const [values, setValues] = useState(initial);
  const [busy, setBusy] = useState(false);
  const [errors, setErrors] = useState<Record<string, string>>({});
  return {
    values,
    busy,
    set: (key, value) => {
      setValues(old => ({ ...old, [key]: value }));
      setErrors(old => Object.fromEntries(Object.entries(old).filter(([of]) => of !== key)));
    },
    errorOf: key => errors[key],
    error: errors[''],
    submit: () => {
      setBusy(true);
      send(values).then(onDone, (reason: unknown) => {
        setBusy(false);
        const split = splitRefusal(reason, Object.keys(values), say);
        setErrors(split[''] ? { ...split, '': describeFailure(reason, t, say) } : split);
      });
    }
  };
}
