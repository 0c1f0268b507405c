/** Somebody else has changed it meanwhile: what they say, and what is said here. */
import { TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import { Banner } from '../kit/States';
import type { Conflict } from './form';
import { readDraft, type Draft } from './kinds';
import type { NounField } from './noun';
import { plain } from './Value';
import type { NounWords } from './words';

interface Props {
  conflicts: Conflict[];
  words: NounWords;
  onMine(): void;
  onTheirs(): void;
}

export function ConflictNotice({ conflicts, words, onMine, onTheirs }: Props): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const say = (field: NounField, draft: Draft): string => {
    const reading = readDraft(field.kind, draft);
    return reading.wrong === undefined
      ? plain(field.kind, field.name, reading.value, t, language)
      : String(draft as string);
  };
  const clashes = conflicts.some(conflict => conflict.mine !== null);
  return (
    <Banner tone="warning" icon={<TriangleAlert size={18} />} urgent>
      <strong className="bai-line">{t('conflict.title')}</strong>
      <span className="bai-line">{t(clashes ? 'conflict.both' : 'conflict.other')}</span>
      {conflicts.length ? (
        <div className="bai-conflict">
          <table>
            <caption className="bai-hidden">{t('conflict.title')}</caption>
            <thead>
              <tr>
                <th scope="col">{t('conflict.field')}</th>
                <th scope="col">{t('conflict.theirs')}</th>
                <th scope="col">{t('conflict.mine')}</th>
              </tr>
            </thead>
            <tbody>
              {conflicts.map(({ field, mine, theirs }) => (
                <tr key={field.name}>
                  <th scope="row">{words.label(field.name)}</th>
                  <td>{say(field, theirs)}</td>
                  <td>{mine === null ? t('conflict.untouched') : say(field, mine)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      <span className="bai-conflict-actions">
        <Button size="small" onClick={onMine}>
          {t('conflict.keepMine')}
        </Button>
        <Button size="small" onClick={onTheirs}>
          {t('conflict.takeTheirs')}
        </Button>
      </span>
    </Banner>
  );
}
