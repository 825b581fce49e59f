"""transformers.Trainer on a small BERT made from a configuration: nothing is downloaded, and nothing is kept.

Samples take 5 ms each and are all alike, so that the weights end where they end in whatever order batches come. While
a file named `sleep` lies in its folder, every epoch ends with 0.3 s of sleep.
"""

import argparse
import json
import os
import time

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--batches", type=int, default=1000)
parser.add_argument("--accumulate", type=int, default=1)
options = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)


class Sentences(Dataset):
    def __init__(self, count, seconds):
        self.count, self.seconds = count, seconds

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return {"input_ids": torch.arange(1, 17), "attention_mask": torch.ones(16, dtype=torch.long), "labels": 1}


class Sleeping(TrainerCallback):
    def on_epoch_end(self, arguments, state, control, **others):
        if os.path.exists("sleep"):
            time.sleep(0.3)


if __name__ == "__main__":
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=64,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=32,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
    )
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir="out",
            use_cpu=True,
            num_train_epochs=options.epochs,
            per_device_train_batch_size=4,
            per_device_eval_batch_size=4,
            gradient_accumulation_steps=options.accumulate,
            learning_rate=0.01,
            eval_strategy="epoch",
            save_strategy="no",
            logging_steps=1,
            report_to="none",
        ),
        train_dataset=Sentences(4 * options.batches, 0.005),
        eval_dataset=Sentences(8, 0.0),
        callbacks=[Sleeping()],
    )
    trainer.train()
    history = trainer.state.log_history
    with open("result.json", "w") as handle:
        json.dump(
            {
                "steps": trainer.state.global_step,
                "epochs": trainer.state.epoch,
                "validated": sum("eval_loss" in entry for entry in history),
                "losses": [entry["loss"] for entry in history if "loss" in entry],
                "weights": model.classifier.weight.flatten().tolist(),
            },
            handle,
        )
