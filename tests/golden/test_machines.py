"""A model is known by its name, and no person is taken for one."""

from __future__ import annotations

import pytest

from karat.tables.judgments import names_a_model

MODELS = """
    gpt gpt-4 GPT-4o gpt4 gpt-5 gpt_4_turbo chatgpt ChatGPT-4 openai/gpt-4.1-mini gpt-oss-120b
    claude-3 claude-3-opus claude_3_5_sonnet claude2 claude-opus-4 claude-sonnet-4-5 claude-v2
    anthropic/claude-3-haiku anthropic.claude-instant-v1 gemini gemini-1.5-pro gemini-pro
    google/gemini-2.0-flash gemma-2-9b gemma3 llama llama3 llama-3.1-70b Meta-Llama-3-8B-Instruct
    codellama-7b tinyllama-1.1b mistral mistral-large mistral-7b-instruct ministral-8b mixtral-8x7b
    qwen qwen2.5-72b Qwen3 deepseek deepseek-r1 deepseek-chat grok-2 phi-3-mini command-r-plus
    o1 o3-mini o4-mini llm LLM llm-judge llm_1 judge-llm autojudge auto-judge UMBRELA umbrela-gpt4o
    rankgpt rankllama chatglm-6b llmjudge
"""
PEOPLE = """
    claude Claude claude.dupont claude-dupont claude_monet jean-claude claudette claudia
    gemma gemma.chan gemma-collins geminiani gabriela.mistral mistral.gabriela frederic-mistral
    dolores.llama llamas.pedro lamar phil phil2 phi sophia ann ann2 anna-2 bob o.neill o'brien otto
    ai.weiwei ai-ling kai mai tai bert albert ernie eagle falconer vicuna.maria cohere.jean
    grace.hopper groker gptaylor agpt olmo cole commander bart bard nova.peris yi yi.zhang import
    anonymous rater1 rater-4 judge3 r2d2 x1 deepa seekers quentin wen qwerty willm allman
    ann@openai.com claude@anthropic.com ai bot
"""


@pytest.mark.parametrize(
    "name",
    MODELS.split(),
)
def test_a_model(name: str) -> None:
    assert names_a_model(name)
    assert names_a_model(f" {name.upper()} ")


@pytest.mark.parametrize("name", ["claude 3 opus", "Claude 3.5 Sonnet", "llm m1", "GPT 4", "gpt 5"])
def test_a_model_in_words(name: str) -> None:
    assert names_a_model(name)


@pytest.mark.parametrize(
    "name",
    PEOPLE.split(),
)
def test_a_person(name: str) -> None:
    assert not names_a_model(name)


@pytest.mark.parametrize(
    "name", ["claude 2", "anonymous 2", "Claude Dupont", "Gemma 2", "王伟", ""]
)
def test_a_person_in_words(name: str) -> None:
    assert not names_a_model(name)
