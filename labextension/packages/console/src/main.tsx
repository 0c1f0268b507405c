import { createTranslator } from '@backendai/ui';
import { KitTheme } from '@backendai/ui/kit';
import '@backendai/ui/styles/tokens.css';
import '@backendai/ui/styles/pages.css';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { I18nextProvider } from 'react-i18next';
import { App } from './App';
import './console.css';
import { nonce } from './host';
import { startLanguage } from './language';

const root = document.getElementById('root');
const translator = await createTranslator(startLanguage());

if (root) {
  createRoot(root).render(
    <StrictMode>
      <I18nextProvider i18n={translator}>
        <KitTheme nonce={nonce} modeKey="bai-mode">
          <App />
        </KitTheme>
      </I18nextProvider>
    </StrictMode>
  );
}
